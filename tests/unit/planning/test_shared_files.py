"""Partitions that are no sets of files: what the plan says and seals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.manifest import Rewrite, TargetPin
from errata.model.partition import Grain
from errata.model.product import Publish
from errata.ports.tables import Column, PartitionField, TargetState
from unit.planning.worlds import PRODUCT, TARGET, ask, levels, plan

PLAIN = replace(
    TARGET, partition_field=None, partition_fields=(), shared_files=("a",), shared_rows=70, shared_bytes=7000
)
MONTHS = replace(PLAIN, partition_fields=(PartitionField("business_date", "date", "month", Grain.MONTH),))
OLDER = replace(TARGET, shared_files=("a", "b"), shared_rows=70, shared_bytes=7000)


@pytest.mark.parametrize(
    "target,why",
    [
        (PLAIN, "lake.fin.daily_revenue is partitioned by nothing, not by day of business_date"),
        (MONTHS, "partitioned by month(business_date)"),
        (OLDER, "2 files with rows of these partitions have another partition spec"),
    ],
)
def test_the_plan_says_why_rows_are_written_anew_and_how_many(target: TargetState, why: str) -> None:
    """It warns, and the manifest seals mode, reason and amount; staged output goes to a shadow."""
    made = plan(target=target)
    assert levels(made, "rewrite") == ["warn"]
    assert made.manifest is not None
    sealed = made.manifest.target
    assert (sealed.mode, sealed.transform, sealed.column_type) == ("rewrite", "identity", "date")
    assert sealed.rewrite == Rewrite(sealed.rewrite.why if sealed.rewrite else "", len(target.shared_files), 70, 7000)
    assert why in sealed.rewrite.why
    assert sealed.shadow
    (said,) = [verdict.message for verdict in made.verdicts if verdict.rule == "rewrite"]
    assert why in said
    assert "70 rows, 7.0 kB" in said


def test_partitions_that_are_sets_of_files_are_published_by_metadata() -> None:
    """No verdict, no shadow; manifests of before the mode was there read the same."""
    made = plan()
    assert levels(made, "rewrite") == []
    assert made.manifest is not None
    assert (made.manifest.target.mode, made.manifest.target.rewrite, made.manifest.target.shadow) == (
        "metadata", None, None,
    )  # fmt: skip
    fields = TargetPin.__dataclass_fields__
    assert (fields["mode"].default, fields["rewrite"].default) == ("metadata", None)


def test_a_grain_that_the_column_does_not_have_is_refused() -> None:
    """Days of a whole number cannot be derived from its values."""
    columns = tuple(Column(one.name, "int" if one.name == "business_date" else one.type) for one in TARGET.columns)
    made = plan(target=replace(PLAIN, columns=columns))
    assert made.is_refused
    (said,) = [verdict.message for verdict in made.verdicts if verdict.rule == "schema"]
    assert "grain day of business_date (int) cannot be derived from its values" in said


def test_an_append_needs_partitions_that_are_known_to_be_empty() -> None:
    """A shared file may hold rows of them."""
    made = plan(ask(), target=PLAIN, product=replace(PRODUCT, publish=Publish(mode="append")))
    assert levels(made, "append") == ["refuse"]


def test_a_mode_beside_the_target_writes_nothing_of_it_anew() -> None:
    """The target is not touched, so there is nothing to warn of."""
    made = plan(target=PLAIN, product=replace(PRODUCT, publish=Publish(mode="corrections", corrections="lake.fin.c")))
    assert levels(made, "rewrite") == []
