"""Whether a table may still take the columns that a run was planned with, and where its history begins."""

from __future__ import annotations

from dataclasses import replace

from errata.model.manifest import NewColumn
from errata.model.table import (
    TableColumn,
    TableSchema,
    find_columns_to_add,
    find_schema_drift,
    is_first_snapshot,
)
from unit.gate.manifests import target_pin

NEW = (NewColumn("margin", "double", 8), NewColumn("orders", "long", 9))
PLANNED = {"day": "date", "account": "string", "items": "list<string>", "margin": "double", "orders": "long"}
TARGET = replace(target_pin(columns=PLANNED), schema_id=3, last_column_id=7, new_columns=NEW)
BEFORE = TableSchema(3, 7, {n: PLANNED[n] for n in ("day", "account", "items")}, {"day": 1, "account": 2, "items": 3})
IDS = {"day": 1, "account": 2, "items": 3, "margin": 8, "orders": 9}
AFTER = TableSchema(4, 9, PLANNED, IDS)


def test_columns_are_added_while_the_table_would_give_them_the_planned_ids() -> None:
    """The same schema and no id used since; an id used up by a column that came and went is another table."""
    assert find_columns_to_add(TARGET, BEFORE) == NEW
    assert find_columns_to_add(TARGET, replace(BEFORE, last_column_id=8)) is None


def test_columns_that_an_earlier_part_brought_are_not_added_again() -> None:
    """The schema is another one, and holds exactly what was planned."""
    assert find_columns_to_add(TARGET, AFTER) == ()


def test_a_column_that_was_dropped_and_added_again_is_another_column() -> None:
    """Staged files carry its old id and would read as NULL; so do nested fields, whose ids are counted alike."""
    assert find_columns_to_add(TARGET, replace(AFTER, last_column_id=10, field_ids={**IDS, "account": 10})) is None
    assert find_columns_to_add(TARGET, replace(AFTER, schema_id=6, last_column_id=11)) is None


def _columns(**ids: int) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(number, name) for name, number in ids.items())


FOUND = _columns(day=1, account=2, items=3)


def test_a_renamed_column_is_the_same_column() -> None:
    """Also where its old name is another column's by now."""
    since = find_schema_drift(TARGET, FOUND, _columns(day=1, items=2, account=3, margin=8, orders=9))
    assert (since.names["account"], since.names["items"]) == ("items", "account")
    assert (since.added, since.dropped) == ({}, ())


def test_columns_that_the_plan_does_not_know_are_told_with_their_default() -> None:
    """A column of the publication is the plan's own, and a lineage column is no content."""
    now = (*_columns(day=1, account=2, items=3, margin=8, orders=9, produced_by_run_id=10), TableColumn(11, "x", "EU"))
    assert find_schema_drift(TARGET, FOUND, now).added == {"x": "EU"}
    assert find_schema_drift(TARGET, FOUND, now).dropped == ()


def test_a_column_dropped_and_added_again_is_dropped_and_added() -> None:
    """Files of the plan carry its old id."""
    since = find_schema_drift(TARGET, FOUND, _columns(day=1, account=20, items=3))
    assert (since.added, since.dropped) == ({"account": None}, ("account",))


def test_names_tell_where_the_table_forgot_the_planned_schema() -> None:
    """Expiry may remove schemas that no snapshot uses."""
    since = find_schema_drift(TARGET, (), _columns(day=1, account=2, extra=12, margin=8, orders=9))
    assert (since.added, since.dropped) == ({"extra": None}, ("items",))


def test_a_table_begins_with_a_snapshot_that_added_all_it_holds() -> None:
    """No parent alone proves nothing; a writer that does not count is not believed."""
    counts = {"total-data-files": "2", "total-delete-files": "0", "added-data-files": "2"}
    assert is_first_snapshot(None, counts)
    assert is_first_snapshot(None, {"total-data-files": "0", "total-delete-files": "0"})
    assert not is_first_snapshot("7", counts)
    for other in (
        counts | {"total-data-files": "3"},
        counts | {"deleted-data-files": "1"},
        counts | {"total-delete-files": "1"},
        counts | {"removed-delete-files": "1"},
        {"added-data-files": "2"},
    ):
        assert not is_first_snapshot(None, other), other
