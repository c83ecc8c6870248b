"""Rows and correction events that go to topics after a publication."""
