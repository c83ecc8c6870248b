"""Lineage events as OpenLineage, and the ways to send them."""
