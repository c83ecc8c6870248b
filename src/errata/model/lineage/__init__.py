"""Lineage: where events go, which moments of a run have one, and what an event says."""
