"""Commands of the user's own that Errata runs: the break-glass alarm and health probes."""
