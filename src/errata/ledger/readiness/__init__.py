"""Holds of consumers, and what decides whether partitions are ready."""
