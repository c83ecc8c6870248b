"""Governed backfill for Spark lakehouses."""
