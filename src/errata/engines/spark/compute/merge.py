"""Merge a transform's rows into a partition's existing rows by key. Runs no Spark action.

Rows are merged within one partition. For each key the row with the newest version is kept, and the transform's row if
versions are equal; if that row is marked as deleted, the key is removed. Keys that the transform does not return keep
their rows, even if a key occurs twice. Ambiguous changes fail the chunk: a change without key or version, or two
changes of one key with the same version. The merge takes one shuffle and one sort; the result depends only on the rows,
never on their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope, partition_name, partition_unit
from errata.errors import OutputContract
from errata.model.diff import MASK
from errata.model.manifest import TargetPin
from errata.model.partition_sql import quoted
from errata.model.product import Merge

DELETED = "__errata_deleted"
_CHANGE, _UNIT, _TOP, _RANK, _TIED = (
    "__errata_change",
    "__errata_unit",
    "__errata_top",
    "__errata_rank",
    "__errata_tied",
)
_MERGE_MESSAGE = re.compile(r"errata merge: ([^\n]*)")
_MAX_VALUE_LENGTH = 200


def mark_deletions(frame: DataFrame, merge: Merge) -> DataFrame:
    """Mark the transform's rows for which the deletion condition is true; NULL is not true."""
    condition = F.expr(merge.sql) if merge.sql else F.lit(False)  # noqa: FBT003 - a literal is a value
    return frame.withColumn(DELETED, F.coalesce(condition.cast("boolean"), F.lit(False)))  # noqa: FBT003


def merge_rows(
    prior: DataFrame,
    changes: DataFrame,
    target: TargetPin,
    version: str | None,
    partitions: Sequence[str],
    classified: Sequence[str] = (),
) -> DataFrame:
    """The rows of these partitions after the merge; ``changes`` must be marked, and both need the target's columns."""
    key = [F.col(quoted(name)) for name in target.key]
    unit = partition_unit(target.column, target.column_type, target.grain).alias(_UNIT)
    columns = [F.col(quoted(name)) for name in target.columns]
    sides = [
        prior.select(*columns, unit, F.lit(False).alias(DELETED), F.lit(0).alias(_CHANGE)),  # noqa: FBT003
        _check_changes(changes, target, version, partitions, classified).select(
            *columns, unit, F.col(DELETED), F.lit(1).alias(_CHANGE)
        ),
    ]
    newest = [F.col(quoted(version)).desc_nulls_last()] if version else []
    of_key = Window.partitionBy(F.col(_UNIT), *key).orderBy(*newest, F.col(_CHANGE).desc())
    same_version = F.lead(quoted(version)).over(of_key).eqNullSafe(F.col(quoted(version))) if version else F.lit(True)  # noqa: FBT003
    is_tied = (F.lead(_CHANGE).over(of_key) == 1) & same_version
    ranked = (
        sides[0]
        .unionAll(sides[1])
        .withColumns(
            {
                _TOP: F.first(_CHANGE).over(of_key),
                _RANK: F.row_number().over(of_key),
                _TIED: F.coalesce(is_tied, F.lit(False)),  # noqa: FBT003
            }
        )
    )
    said = "version" if version else "key"
    twice = _raise_for_row(f"two changes of one key have the same {said}", target, classified)
    is_winner = (F.col(_RANK) == 1) & ~F.col(DELETED)
    stays = (
        F.when(F.col(_TOP) == 0, F.col(_CHANGE) == 0)
        .when((F.col(_RANK) == 1) & F.col(_TIED), twice)
        .otherwise(is_winner)
    )
    return ranked.where(stays).select(*columns)


def _check_changes(
    changes: DataFrame, target: TargetPin, version: str | None, partitions: Sequence[str], classified: Sequence[str]
) -> DataFrame:
    """The changes, with a check that fails the Spark job at the first ambiguous or misplaced change."""
    no_key = F.lit(False)  # noqa: FBT003
    for name in target.key:
        no_key = no_key | F.col(quoted(name)).isNull()
    # a row written outside the chunk would show up in the written files; a deletion outside would go unnoticed
    inside = F.coalesce(
        in_scope(target, partitions), F.lit(False)  # noqa: FBT003
    )  # fmt: skip
    sound = F.when(no_key, _raise_for_row("a change has no key", target, classified))
    if version:
        sound = sound.when(
            F.col(quoted(version)).isNull(), _raise_for_row(f"a change has no {version}", target, classified)
        )
    outside = _raise_for_row("a deletion is of a partition outside the chunk", target, classified)
    return changes.where(sound.when(F.col(DELETED) & ~inside, outside).otherwise(F.lit(True)))  # noqa: FBT003


def _raise_for_row(said: str, target: TargetPin, classified: Sequence[str]) -> Column:
    """An expression that fails on any row it is evaluated for, naming its key; classified values are masked."""
    names = dict.fromkeys((*target.key, target.column))
    shown = [
        F.concat(F.lit(f"{name}="), F.coalesce(_format_value(name, target, name in classified), F.lit("NULL")))
        for name in names
    ]
    return F.raise_error(F.concat(F.lit(f"errata merge: {said}: "), F.concat_ws(", ", *shown))).cast("boolean")


def _format_value(name: str, target: TargetPin, is_classified: bool) -> Column:
    value = F.col(quoted(name))
    if is_classified:
        return F.when(value.isNotNull(), F.lit(MASK))
    if name == target.column:
        return partition_name(target)
    return F.regexp_replace(F.substring(value.cast("string"), 1, _MAX_VALUE_LENGTH), r"\s", " ")


def find_merge_violation(error: BaseException, where: str) -> OutputContract | None:
    """The error raised by :func:`merge_rows` inside Spark; None if the exception has another cause."""
    found = _MERGE_MESSAGE.search(str(error))
    if found is None:
        return None
    return OutputContract(
        f"{where}: {found[1].strip()}; it is not clear which row of the key wins",
        state="nothing of this chunk was staged; main is unchanged",
        hint="give every change a key and a version of its own, in the transform or by a row rule",
    )
