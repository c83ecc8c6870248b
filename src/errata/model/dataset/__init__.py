"""Datasets: plain Parquet files in folders, which become a table as they are. Pure."""
