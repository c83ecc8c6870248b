"""What consumers show: Redis, PostgreSQL, HTTP and commands."""
