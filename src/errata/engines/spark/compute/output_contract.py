"""The output contract: a transform's columns are the target's columns, by name, with matching types.

Order does not matter. Only Iceberg's own type promotions are allowed, because a silent cast can change a number. A
column missing from the output is written as NULL only if the plan overrides the schema check, and never if the column
is required or part of the key or the partition. A NULL in a required column fails its chunk.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.output_advice import advise_on_output
from errata.errors import OutputContract
from errata.model.manifest import TargetPin
from errata.model.partition_sql import quoted
from errata.model.types import from_spark_scalar, is_assignable, to_spark_scalar

_REQUIRED = re.compile(r"errata: (column \S+ of \S+ is required)")
_UNSTAGED_STATE = "nothing of this chunk was staged; main is unchanged"


def conform_output(
    frame: DataFrame, target: TargetPin, *, may_leave_out: bool = False, beside: tuple[str, ...] = ()
) -> DataFrame:
    """Select the target's columns in its order; raises ``OutputContract`` listing every difference.

    Errata's own columns (``beside``) stay at the end.
    """
    found = {
        field.name: from_spark_scalar(field.dataType.simpleString())
        for field in frame.schema.fields
        if field.name not in beside
    }
    left_out = [name for name in target.columns if name not in found]
    fixed = {*target.required, *target.key, target.column}
    problems = [
        f"column {name} is missing" + (_explain_missing(name, target) if may_leave_out else "")
        for name in left_out
        if not may_leave_out or name in fixed
    ]
    unknown = [name for name in found if name not in target.columns]
    problems += [f"column {name} is not in {target.table}" for name in unknown]
    misfits = {
        name: wanted
        for name, wanted in target.columns.items()
        if name in found and not is_assignable(found[name], wanted)
    }
    problems += [f"column {name}: expected {wanted}, found {found[name]}" for name, wanted in misfits.items()]
    if problems:
        raise OutputContract(
            f"the transform's output does not match {target.table}: {'; '.join(problems)}",
            state=_UNSTAGED_STATE,
            hint=advise_on_output(misfits, left_out, unknown),
            problems=problems,
        )
    nullable = {field.name for field in frame.schema.fields if field.nullable}
    return frame.select(
        *[
            _build_null_column(name, target) if name in left_out else _select_present(name, target, nullable)
            for name in target.columns
        ],
        *beside,
    )


def find_null_violation(error: BaseException, where: str) -> OutputContract | None:
    """The error raised by :func:`conform_output` inside Spark; None if the exception has another cause."""
    found = _REQUIRED.search(str(error))
    if found is None:
        return None
    return OutputContract(
        f"{where}: {found[1]}, and the transform's output holds NULL in it",
        state=_UNSTAGED_STATE,
        hint="give the column a value in every row; the table itself may be made to allow NULL",
    )


def _explain_missing(name: str, target: TargetPin) -> str:
    kind = "required by the table" if name in target.required else "of the key or the partition"
    return f", and no override helps: it is {kind}, so it cannot be NULL"


def _select_present(name: str, target: TargetPin, nullable: set[str]) -> Column:
    value = F.col(quoted(name))
    if name not in target.required or name not in nullable:
        return value
    # Spark considers nearly every computed column nullable, so NULLs can only be found in the rows
    return F.coalesce(value, F.raise_error(f"errata: column {name} of {target.table} is required")).alias(name)


def _build_null_column(name: str, target: TargetPin) -> Column:
    kind = to_spark_scalar(target.columns[name])
    return (F.lit(None).cast(kind) if kind else F.lit(None)).alias(name)
