"""Read Iceberg tables, tag snapshots and keep Errata's own small tables through pyiceberg; never starts a JVM."""
