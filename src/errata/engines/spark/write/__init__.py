"""Write rows computed by Spark: appends, rewrites, side tables, quarantine."""
