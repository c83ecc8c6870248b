"""Copies of a table in a warehouse. Pure.

declaration   a copy as a product file declares it
resolution    whether it fits the tables in lake and warehouse
table         a copy with its columns, and the names of the tables next to it
partition_scope   partitions of a copy in SQL
column_types  which column of a warehouse can hold every value of a type of the lake
row_text      the text and the hash of a row, equal in Python, Spark, PostgreSQL and Snowflake
checksum      what the rows of a partition are compared by
partition_comparison   whether a partition of a copy holds what is accepted
measure       checksums of rows in Python
marker        who may replace rows of a copy, and what its partitions hold
repair        a planned repair, as a plan seals it
delivery      one replacement of partitions, and what it did
receipt       what each partition got, measured on every side, as it is put on record
summary       what a run brought to each copy, in one row
snowflake_account   how a Snowflake account is reached
lake_file     whether a data file of the lake may be loaded as it is
load_plan     which data files are loaded as they are, and from where
refusals      why a delivery writes nothing, in the same words for every warehouse
"""
