"""Metrics of a project, made from the ledger: what they are called, their values, and how Prometheus gets them."""
