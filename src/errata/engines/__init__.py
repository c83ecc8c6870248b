"""Adapters: each package implements ports for one system. Only ``wiring`` imports them."""
