"""Change logs of databases as inputs: declarations, positions in the log, and what can be answered exactly. Pure."""
