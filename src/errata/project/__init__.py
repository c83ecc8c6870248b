"""Reads errata.yaml and the product files."""
