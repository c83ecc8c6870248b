"""Read Iceberg tables, and tag snapshots, through pyiceberg; never starts a JVM."""
