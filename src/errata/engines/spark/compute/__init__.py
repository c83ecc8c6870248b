"""Compute chunks: load the transform, run it, check its output against the contract."""
