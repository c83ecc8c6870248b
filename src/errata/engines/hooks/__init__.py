"""User-defined hooks: the break-glass alarm and health probes."""
