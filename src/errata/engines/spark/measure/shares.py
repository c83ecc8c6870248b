"""Count the rows of each value of a column by partition: all columns of a table in one aggregate. Read-only.

A partition in which a column has too many values is cut in Spark, so that neither an executor nor the driver ever
holds all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.measure.aggregates import PartitionGrouping, translate_spark_errors
from errata.model.partition_sql import quoted
from errata.ports.measure import MAX_CATEGORIES, Measurement, Scan, encode_shares

_UNIT, _PARTITION = "__errata_unit", "__errata_partition"


def measure_shares(scan: Scan, rows: DataFrame, by: PartitionGrouping, partitions: Sequence[str]) -> list[Measurement]:
    """Rows of each value of the scan's share columns, for these partitions and for any other found in the rows."""
    columns = sorted(set(scan.shares.values()))
    values = [F.struct(F.lit(n).alias("n"), F.col(quoted(c)).cast("string").alias("value")) for n, c in
              enumerate(columns)]  # fmt: skip
    each = Window.partitionBy(_UNIT, "n").orderBy("value")
    with translate_spark_errors(scan.scope):
        counted = (
            rows.select(by.unit, F.explode(F.array(*values)).alias("one"))
            .groupBy(_UNIT, "one.n", "one.value")
            .agg(F.count("*").alias("rows"))
            # one more than is allowed shows that there are too many
            .withColumn("place", F.row_number().over(each))
            .where(F.col("place") <= MAX_CATEGORIES + 1)
            .groupBy(_UNIT, "n")
            .agg(F.collect_list(F.struct("value", "rows")).alias("held"))
            .select(by.text, "n", "held")
        )
        found = {(row[_PARTITION], row["n"]): {one[0]: one[1] for one in row["held"]} for row in counted.collect()}
    others = sorted({name for name, _ in found} - set(partitions))
    return [
        Measurement(scan.scope, name, measure, encode_shares(found.get((name, columns.index(column)), {})))
        for name in (*partitions, *others)
        for measure, column in scan.shares.items()
    ]
