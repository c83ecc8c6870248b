"""The files that were imported or recorded."""
