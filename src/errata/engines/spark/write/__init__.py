"""Write rows that Spark computed: appends, rewrites, side tables, quarantine."""
