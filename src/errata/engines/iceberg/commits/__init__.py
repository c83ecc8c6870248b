"""Commits to Iceberg tables through the Java API, each a single compare-and-swap."""
