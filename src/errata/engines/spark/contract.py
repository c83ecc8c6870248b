"""The output contract: a transform's columns are the target's columns, by name, and their types fit exactly.

Order does not matter. Only widenings that Iceberg itself calls promotions are allowed, because a silent cast is how a
wrong number gets in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from errata.errors import OutputContract
from errata.model.manifest import TargetPin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["conform", "fits"]

_PROMOTIONS = {("int", "long"), ("float", "double")}
_SPARK_NAMES = {
    "bigint": "long",
    "timestamp_ntz": "timestamp",
    "timestamp": "timestamptz",
    "smallint": "int",
    "tinyint": "int",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def conform(frame: DataFrame, target: TargetPin) -> DataFrame:
    """The frame's columns in the target's order; raises ``OutputContract`` listing every difference."""
    found = {field.name: _iceberg_name(field.dataType.simpleString()) for field in frame.schema.fields}
    problems = [f"column {name} is missing" for name in target.columns if name not in found]
    problems += [f"column {name} is not in {target.table}" for name in found if name not in target.columns]
    problems += [
        f"column {name}: expected {wanted}, found {found[name]}"
        for name, wanted in target.columns.items()
        if name in found and not fits(found[name], _normal(wanted))
    ]
    if problems:
        raise OutputContract(
            f"the transform's output does not match {target.table}: {'; '.join(problems)}",
            state="nothing of this chunk was staged; main is unchanged",
            hint="select exactly the target's columns at the end of the transform, then plan again",
            problems=problems,
        )
    return frame.select(*[f"`{name}`" for name in target.columns])


def fits(found: str, wanted: str) -> bool:
    """Whether a value of one Iceberg type may be written to a column of another without changing it."""
    if found == wanted or (found, wanted) in _PROMOTIONS:
        return True
    narrow, wide = _DECIMAL.fullmatch(found), _DECIMAL.fullmatch(wanted)
    return bool(narrow and wide and narrow[2] == wide[2] and int(narrow[1]) <= int(wide[1]))


def _iceberg_name(spark_type: str) -> str:
    return _SPARK_NAMES.get(spark_type, spark_type)


def _normal(iceberg_type: str) -> str:
    decimal = _DECIMAL.fullmatch(iceberg_type)
    return f"decimal({decimal[1]},{decimal[2]})" if decimal else iceberg_type
