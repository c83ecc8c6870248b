"""A daily pipeline and a backfill of the same table side by side, and a consumer of both."""
