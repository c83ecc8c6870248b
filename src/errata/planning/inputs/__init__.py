"""Inputs of a plan: whether they are complete, and the snapshot that each partition reads. Pure."""
