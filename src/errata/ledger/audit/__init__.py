"""The hash chain of audit entries, and everything that checks rows against it."""
