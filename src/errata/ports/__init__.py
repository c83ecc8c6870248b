"""Ports: what the core requires of tables, compute engines and hooks, as Protocols that state their obligations."""
