"""Iceberg: table metadata and tags without a JVM (pyiceberg), commits through the Java API (py4j)."""
