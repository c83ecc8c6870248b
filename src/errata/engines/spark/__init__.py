"""Everything that imports pyspark: read inputs, compute chunks, measure, compare, write.

Sessions passed to these modules must use UTC and ANSI SQL. Nothing here decides whether a number is acceptable.
"""
