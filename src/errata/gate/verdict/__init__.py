"""Judge measurements: row counts, checks, reconciliation, control partitions, comparison with earlier output. Pure."""
