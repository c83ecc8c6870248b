"""Measure a candidate: aggregates, checksums, totals, row accounts."""
