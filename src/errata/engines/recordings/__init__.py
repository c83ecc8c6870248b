"""Recorded files, local or on an object store: looked at, copied, numbered line by line, and read back."""
