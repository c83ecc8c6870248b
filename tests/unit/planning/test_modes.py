"""Publication modes in a plan: what each asks of the table, and what is sealed of it."""

from __future__ import annotations

from dataclasses import replace

from errata.model.manifest import Override
from errata.model.product import Merge, Publish
from errata.model.side_tables import CORRECTION_COLUMNS
from errata.ports.tables import Column
from unit.planning.worlds import DAYS, PRODUCT, STREAMED, TARGET, ask, levels, message, plan

APPEND = replace(PRODUCT, publish=Publish("append"))
WEEK = DAYS[:7]
EMPTY = replace(
    TARGET,
    partitions={day: size for day, size in TARGET.partitions.items() if day not in WEEK},
    expected=dict.fromkeys(WEEK, ()),
)


def test_append_is_planned_into_empty_partitions_and_seals_its_mode():
    """The mode is in the manifest, so that an approver signs it."""
    made = plan(product=APPEND, target=EMPTY)
    assert levels(made, "append") == ["ok"]
    assert made.manifest is not None
    assert made.manifest.publish == Publish("append")


def test_append_is_refused_where_partitions_are_not_empty_and_names_them():
    """No override helps: the publication would be a conflict whatever anyone says."""
    half = replace(EMPTY, partitions=EMPTY.partitions | {day: TARGET.partitions[day] for day in DAYS[2:4]})
    made = plan(ask(overrides=(Override("append", "I know"),)), product=APPEND, target=half)
    assert levels(made, "append") == ["refuse"]
    assert "2 of 7 partitions are not empty: 2026-01-03 … 2026-01-04" in message(made, "append")
    assert "an override cannot set this aside" in message(made, "append")
    assert made.manifest is None


def test_other_modes_do_not_speak_of_empty_partitions():
    """A replacement takes whatever is there."""
    assert levels(plan(), "append") == []


def test_streams_are_no_reason_to_refuse_an_append():
    """They see an append as new rows, where they stop at an overwrite, which the plan says."""
    assert levels(plan(product=APPEND, project=STREAMED, target=EMPTY), "streaming-readers") == ["ok"]
    assert levels(plan(project=STREAMED), "streaming-readers") == ["warn"]


def test_the_version_of_a_merge_is_a_column_of_the_target():
    """Rows that are there are compared by it."""
    merging = replace(PRODUCT, publish=Publish("merge", Merge("updated_at")))
    assert "no column updated_at, which publish.merge.version names" in message(plan(product=merging), "schema")
    known = replace(PRODUCT, publish=Publish("merge", Merge("gross", "gone", "`gone`", ("gone",))))
    made = plan(product=known).manifest
    assert made is not None
    assert made.publish.merge == Merge("gross", "gone", "`gone`", ("gone",))


CORRECTING = replace(PRODUCT, publish=Publish(corrections="lake.fin.c"))


def test_the_statement_that_makes_a_missing_table_is_sealed_with_the_plan():
    """An approver sees it, and the publication runs exactly it; a table that is there needs none."""
    made = plan(product=CORRECTING, beside={"lake.fin.c": None}).manifest
    assert made is not None
    (statement,) = made.publish.creates
    assert statement.startswith("CREATE TABLE IF NOT EXISTS `lake`.`fin`.`c` USING iceberg")
    assert "SELECT `business_date`, `account_id`, CAST(NULL AS STRING) AS `kind`" in statement
    there = ("business_date", "account_id", *CORRECTION_COLUMNS)
    known = plan(product=CORRECTING, beside={"lake.fin.c": there}).manifest
    assert known is not None
    assert known.publish.creates == ()


def test_a_table_beside_the_target_that_cannot_take_the_rows_is_refused():
    """Columns that are missing are named; nothing is altered."""
    made = plan(product=CORRECTING, beside={"lake.fin.c": ("business_date", "kind")})
    assert "lake.fin.c, which publish names, lacks columns account_id, partition, old" in message(made, "schema")
    versions = replace(PRODUCT, publish=Publish("version", versions="lake.fin.v"))
    taken = replace(TARGET, columns=(*TARGET.columns, Column("errata_version", "int")))
    told = message(plan(product=versions, target=taken, beside={"lake.fin.v": None}), "schema")
    assert "has columns errata_version, which a table of versions needs for itself" in told


def test_streams_over_a_target_that_is_not_touched_go_on():
    """Modes that publish beside it."""
    beside = replace(CORRECTING, publish=Publish("corrections", corrections="lake.fin.c"))
    made = plan(product=beside, project=STREAMED, beside={"lake.fin.c": None})
    assert levels(made, "streaming-readers") == ["ok"]
