"""Kafka: topics that runs read, and topics that they write."""
