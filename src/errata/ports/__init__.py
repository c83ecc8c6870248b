"""What the core asks of tables, compute engines and hooks, as Protocols with their obligations."""
