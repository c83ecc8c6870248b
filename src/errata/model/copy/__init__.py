"""Copies of a table in a warehouse. Pure.

row_text      the text and the hash of a row, equal in Python, Spark, PostgreSQL and Snowflake
"""
