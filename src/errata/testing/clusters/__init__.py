"""A cluster in memory that workers are started on, for tests of commands."""
