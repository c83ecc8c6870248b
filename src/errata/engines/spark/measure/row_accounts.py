"""Count the rows of a screened input by outcome, in one grouped count over the pinned input. Read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import InputAccess
from errata.engines.spark.inputs.frames import read_screened
from errata.engines.spark.inputs.row_rules import OUT
from errata.engines.spark.measure.aggregates import PartitionGrouping, translate_spark_errors
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest
from errata.model.partition import WHOLE
from errata.model.product.eras import SUPPRESS
from errata.model.product.erasure import ERASED
from errata.ports.measure import ROWS_IN, ROWS_USED, Measurement, input_scope, taken_out_measure


def measure_accounts(
    session: SparkSession, manifest: Manifest, pin: InputPin, parts: Mapping[str, bytes], access: InputAccess
) -> list[Measurement]:
    """Rows in, rows used, and rows removed by each rule, per partition of the run, including zeros."""
    grain, scope = manifest.target.grain, input_scope(pin.name)
    kind = pin.column_type or manifest.target.column_type
    rule = rule_of_pin(pin, grain).without_look
    with translate_spark_errors(scope):
        names = rule.list_reads(manifest.partitions)
        listed = access.for_list(manifest.erasure)
        rows = read_screened(session, pin, parts, names, rule.input_grain, kind, listed, manifest.inputs)
        fate = (F.col(OUT)["action"].alias("action"), F.col(OUT)["reason"].alias("reason"))
        if pin.partition is None:
            named = rows.groupBy(*fate).count().withColumn("partition", F.lit(WHOLE))
        else:
            by = PartitionGrouping(pin.partition, kind, grain, rule.input_grain)
            named = rows.groupBy(by.unit, *fate).count().select(by.text.alias("partition"), "action", "reason", "count")
        found = [(row["partition"], row["action"], row["reason"], int(row["count"])) for row in named.collect()]
    planned = (WHOLE,) if pin.partition is None else manifest.partitions
    seen = [*planned, *sorted({row[0] for row in found} - set(planned))]
    return [
        one
        for name in seen
        for one in _build_measurements(scope, pin, name, [row[1:] for row in found if row[0] == name])
    ]


def _build_measurements(
    scope: str, pin: InputPin, partition: str, found: Sequence[tuple[str | None, str | None, int]]
) -> list[Measurement]:
    counts = {(action, reason): count for action, reason, count in found}
    # list rules that removed nothing too, so that a missing number is noticed
    rules = {(rule.action, rule.name) for rule in pin.row_rules} | {fate for fate in counts if fate != (None, None)}
    rules |= {(SUPPRESS, ERASED)} if pin.subjects else set()
    numbers = {ROWS_IN: sum(counts.values()), ROWS_USED: counts.get((None, None), 0)}
    for action, reason in sorted((str(action), str(reason)) for action, reason in rules):
        numbers[taken_out_measure(action, reason)] = counts.get((action, reason), 0)
    return [Measurement(scope, partition, name, str(count)) for name, count in numbers.items()]
