"""Adapters: each package here implements the ports of the steps for one system, and only wiring imports them."""
