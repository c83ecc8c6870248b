"""Iceberg tables: ``metadata`` through pyiceberg without a JVM, ``commits`` through the Java API."""
