"""Start and configure Spark and its JVM."""
