"""Measure a candidate: aggregates, checksums, totals, row accounts, rows of erased subjects."""
