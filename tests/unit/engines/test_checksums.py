"""What a row's hash is made of, as text; that Spark computes it so is tested on Spark."""

from __future__ import annotations

from pyspark.sql.types import StringType

from errata.engines.spark.measure.checksums import row_hash_sql


def test_a_row_s_hash_is_also_over_which_columns_are_null() -> None:
    """Spark's hashes skip NULL, so that a value could move to another column unseen: each column has a flag."""
    columns = [f"c{n}" for n in range(70)]
    for text in row_hash_sql({name: StringType() for name in columns}, columns):
        assert all(text.count(f"`{name}` IS NULL") == 1 for name in columns)
