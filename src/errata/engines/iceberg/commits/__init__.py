"""Every commit that Errata makes to an Iceberg table, each one compare-and-swap in the JVM."""
