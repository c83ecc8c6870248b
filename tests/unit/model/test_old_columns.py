"""Rules on old schemas and repeated commits that tables in memory and Iceberg share."""

from __future__ import annotations

import pytest

from errata.errors import EngineError
from errata.model.table import DataFile, SchemaField, choose_attempt_snapshot, map_old_columns

DAY, GROSS = SchemaField(1, "day", "date"), SchemaField(2, "gross", "int")


def test_columns_are_matched_by_field_id():
    """A renamed column keeps its values; a widened type takes them."""
    now = [DAY, SchemaField(2, "revenue", "long")]
    assert map_old_columns([DAY, GROSS], now) == ({"day": "day", "revenue": "gross"}, ())


@pytest.mark.parametrize(
    "now,said",
    [
        ([DAY], "column gross (int) was removed since; its values cannot be put back"),
        (
            [DAY, SchemaField(2, "gross", "string")],
            "column gross was int then and is string now; values are never cast for you",
        ),
        (
            [DAY, GROSS, SchemaField(3, "tax", "int", is_required=True)],
            "column tax was added since and may not be NULL",
        ),
        (
            [DAY, GROSS, SchemaField(3, "tax", "int", has_default=True)],
            "column tax was added since with a default value, which old rows would lose",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_column(now: list[SchemaField], said: str):
    """Each reason names its column; nothing is cast or dropped."""
    assert map_old_columns([DAY, GROSS], now)[1] == (said,)


def test_a_repeated_commit_counts_once_and_two_outputs_not_at_all():
    """A lost answer repeats a commit with the same files; with other files nobody can tell which one counts."""
    one, other = DataFile("a.parquet", 1, 1, "2026-01-01"), DataFile("b.parquet", 1, 1, "2026-01-01")
    assert choose_attempt_snapshot("a-1", {}) is None
    assert choose_attempt_snapshot("a-1", {"7": [one], "8": [one]}) == "7"
    with pytest.raises(EngineError, match="attempt a-1 left snapshots with different files"):
        choose_attempt_snapshot("a-1", {"7": [one], "8": [other]})
