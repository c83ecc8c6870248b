"""Restores from elsewhere: columns are matched by name and type, and partitions without rows are refused."""

from __future__ import annotations

from errata.model.partition import Grain
from errata.planning.inputs.restore_origin import RestoreOrigin, check_origin, match_columns
from errata.ports.tables import Column, InputState, PartitionSize

WANTED = (Column("day", "date", required=True), Column("gross", "long"), Column("run", "string"))
SAME = {"day": "day", "gross": "gross", "run": "run"}


def test_a_column_that_is_missing_is_a_problem() -> None:
    """Otherwise it would be NULL in every row afterwards."""
    columns, missing, problems = match_columns(WANTED, (), {"day": "date", "run": "string"}, SAME)
    assert (columns, missing) == ({"day": "day", "run": "run"}, ())
    assert problems == ("it has no column gross",)


def test_a_lineage_column_may_be_missing() -> None:
    """Rows then do not say which run made them; a required one is a problem all the same."""
    there = {"day": "date", "gross": "long"}
    assert match_columns(WANTED, ("run",), there, SAME) == ({"day": "day", "gross": "gross"}, ("run",), ())
    required = (*WANTED[:2], Column("run", "string", required=True))
    assert match_columns(required, ("run",), there, SAME)[2] == ("it has no column run",)


def test_another_type_is_a_problem_and_another_name_of_then_is_not() -> None:
    """Nothing is cast silently; a column that was renamed since the snapshot keeps its values."""
    there = {"day": "date", "gross": "double", "run": "string"}
    columns, _, problems = match_columns(WANTED, (), there, SAME | {"run": "made_by"})
    assert columns["run"] == "made_by"
    assert problems == ("its column gross is double, and the target's is long",)


def test_partitions_without_rows_are_refused() -> None:
    """A restore must not empty what it was to bring back."""
    facts = InputState("restored", "table", "lake.b", "date", {"2026-01-01": PartitionSize(3, 10, 1)}, snapshot_id="7")
    origin = RestoreOrigin("lake.b", "lake.b", SAME)
    (fine,) = check_origin(origin, facts, Grain.DAY, ["2026-01-01"])
    assert (fine.level, "as lake.b was at snapshot 7" in fine.message) == ("ok", True)
    (refused,) = check_origin(origin, facts, Grain.DAY, ["2026-01-01", "2026-01-02"])
    assert (refused.level, refused.leave_out) == ("refuse", frozenset({"2026-01-02"}))
