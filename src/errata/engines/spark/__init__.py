"""Everything that imports pyspark: read inputs, compute chunks, measure, compare, write.

Sessions given to these modules use UTC and ANSI SQL. Nothing here decides whether a number is good.
"""
