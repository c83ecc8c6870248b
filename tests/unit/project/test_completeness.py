"""Completeness of inputs as product files write it."""

from __future__ import annotations

import pytest

from errata.model.product import Completeness
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of, product_with

TABLE = "  orders: {table: lake.raw.orders, partition: business_date, complete: COMPLETE}\n"


def test_each_way_is_one_key(write: Write):
    """A marker beside files, row counts of a table, or a watermark with a delay."""
    for written, found in (
        ("{rows_from: lake.ops.batches.n}", Completeness(rows_from="lake.ops.batches.n")),
        ("{watermark: ingested_at}", Completeness(watermark="ingested_at")),
        ("{watermark: ingested_at, after: 2h}", Completeness(watermark="ingested_at", after="2h")),
    ):
        product = product_with(write, TABLE.replace("COMPLETE", written))
        assert product.inputs[1].complete == found
    product = product_with(write, "    complete: {marker: '{business_date}.done'}\n")
    assert product.inputs[0].complete == Completeness(marker="{business_date}.done")
    assert product.inputs[0].complete.announcing_table == ("", "")


@pytest.mark.parametrize(
    "line,said",
    [
        ("{}", "expected exactly one of marker, rows_from, watermark"),
        ("{watermark: at, marker: _SUCCESS}", "expected exactly one of marker, rows_from, watermark"),
        ("{watermark: at >= end}", "expected a column name"),
        ("{watermark: at, after: 2 hours}", "expected a whole number and s, min, h or d"),
        ("{rows_from: lake.ops.batches.n, after: 2h}", 'the key "after" was refused'),
        ("{marker: _SUCCESS}", "tables have no marker files"),
        ("{rows_from: lake.batches.n}", "expected catalog.namespace.table.column"),
        ("{rows_from: hive.ops.batches.n}", "expected a table of a catalog in errata.yaml (lake)"),
        ("_SUCCESS", "expected a mapping"),
    ],
)
def test_a_table_is_complete_by_something_that_it_has(write: Write, line: str, said: str):
    """Each problem names the key at fault."""
    (found,) = problems_of(write(extra=TABLE.replace("COMPLETE", line)))
    assert "inputs.orders.complete" in found
    assert said in found


@pytest.mark.parametrize(
    "line,said",
    [
        ("{watermark: at}", "files have no watermark"),
        ("{marker: done/_SUCCESS}", "expected the name of a file beside the data files"),
        ("{marker: '{day}.done'}", "expected the name of a file beside the data files"),
    ],
)
def test_files_are_complete_by_something_that_they_have(write: Write, line: str, said: str):
    """A marker is a file of the same directory, and may have the partition in its name."""
    (found,) = problems_of(write(extra=f"    complete: {line}\n"))
    assert said in found


def test_inputs_without_partitions_have_no_rows_by_partition(write: Write):
    """A watermark they may have."""
    (found,) = problems_of(write(extra="  r: {table: lake.a.b, complete: {rows_from: lake.ops.b.n}}\n"))
    assert "rows are counted by partition" in found
    product_with(write, "  r: {table: lake.a.b, complete: {watermark: day}}\n")


def test_what_was_recorded_then_is_not_waited_for(write: Write):
    """A reference as it was does not change any more."""
    line = "  r: {table: lake.a.b, reference: as_recorded, complete: {watermark: day}}\n"
    (found,) = problems_of(write(extra=line))
    assert "as_recorded reads the table as it was" in found


def test_values_have_no_end(write: Write):
    """A watermark has nothing to reach."""
    by_value = PRODUCT.replace("grain: day", "grain: value")
    (found,) = problems_of(write(product=by_value, extra="  r: {table: lake.a.b, complete: {watermark: day}}\n"))
    assert "values have no end in time" in found
