"""Sensors: they wait for people, and for data that may be read."""
