"""Copies of tables in warehouses."""
