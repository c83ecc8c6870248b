"""Iceberg tables: ``metadata`` uses pyiceberg and no JVM, ``commits`` uses the Java API."""
