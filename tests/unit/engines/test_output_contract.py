"""The output contract, as far as it needs no rows: what fits, and what Spark's error means."""

from __future__ import annotations

import pytest

from errata.engines.spark.compute.output_contract import find_null_violation
from errata.model.types import is_assignable, to_spark_scalar


@pytest.mark.parametrize(
    "found, wanted, yes",
    [
        ("int", "long", True),
        ("float", "double", True),
        ("decimal(12,2)", "decimal(18,2)", True),
        ("long", "int", False),
        ("double", "decimal(18,2)", False),
        ("decimal(18,2)", "decimal(12,2)", False),
        ("decimal(12,4)", "decimal(18,2)", False),
        ("timestamp", "timestamptz", False),
        ("int", "string", False),
    ],
)
def test_only_what_loses_nothing_fits(found: str, wanted: str, yes: bool):
    """Iceberg's promotions and no others; a narrower type is never filled by a cast."""
    assert is_assignable(found, wanted) is yes


def test_plain_types_are_spelt_as_spark_spells_them():
    """Zones are the trap: Spark's timestamp is Iceberg's timestamptz."""
    kinds = ("long", "timestamp", "timestamptz", "decimal(9, 4)", "string", "list<int>")
    assert [to_spark_scalar(kind) for kind in kinds] == [
        "bigint", "timestamp_ntz", "timestamp", "decimal(9, 4)", "string", None,
    ]  # fmt: skip


def test_a_null_in_a_required_column_is_told_from_other_failures():
    """The column is named; whatever else Spark says stays the transform's own."""
    raised = RuntimeError("[USER_RAISED_EXCEPTION] errata: column n of lake.fin.sales is required SQLSTATE: P0001")
    found = find_null_violation(raised, "chunk c001")
    assert found is not None
    assert (
        found.message
        == "chunk c001: column n of lake.fin.sales is required, and the transform's output holds NULL in it"
    )
    assert find_null_violation(RuntimeError("NullPointerException"), "chunk c001") is None
