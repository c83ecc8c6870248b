"""The query of a SQL transform, checked without a JVM. Pure."""
