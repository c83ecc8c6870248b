"""Tables in memory: commits are compare-and-swap, versions never change, and rows read as Iceberg reads them."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from errata.testing import CommitFailed, Lake, MemoryTable
from errata.testing.metadata import MAIN, Field
from errata.testing.refs import ensure_guard
from errata.testing.table import Draft

DAY, OTHER = "2026-01-01", "2026-01-02"


@pytest.fixture
def table() -> MemoryTable:
    """One row on each of two days."""
    made = Lake().create("lake.fin.t", {"day": "date", "account": "string"}, partition=("day", "identity"))
    made.append([{"day": DAY, "account": "a"}, {"day": OTHER, "account": "b"}])
    return made


def accounts(table: MemoryTable, at: str | None = None) -> list[str]:
    return sorted(row["account"] for row in table.rows(at))


def test_a_commit_on_a_head_that_has_moved_fails_and_changes_nothing(table: MemoryTable) -> None:
    """The writer sees the row that came in between only when it looks again."""
    late = Draft(table)
    late.add_snapshot(MAIN, "append", add=table.write_files([{1: None, 2: "late"}]))
    table.append([{"day": DAY, "account": "live"}])
    with pytest.raises(CommitFailed, match="main"):
        late.swap()
    assert accounts(table) == ["a", "b", "live"]


def test_a_commit_asserts_only_the_refs_that_it_changes(table: MemoryTable) -> None:
    """A tag that others make meanwhile is kept; one that the commit also makes is a conflict."""
    head = table.metadata.refs[MAIN].snapshot_id
    ours, same = Draft(table), Draft(table)
    ours.set_ref("ours", head)
    same.set_ref("theirs", head)
    table.commit(lambda draft: draft.set_ref("theirs", head))
    ours.swap()
    assert {"ours", "theirs"} <= set(table.metadata.refs)
    with pytest.raises(CommitFailed, match="theirs"):
        same.swap()


def test_a_commit_sent_twice_lands_once(table: MemoryTable) -> None:
    """The second time its own ref has moved."""
    draft = Draft(table)
    draft.add_snapshot(MAIN, "append", add=table.write_files([{1: None, 2: "once"}]))
    draft.swap()
    with pytest.raises(CommitFailed):
        draft.swap()
    assert accounts(table) == ["a", "b", "once"]


def test_concurrent_appends_all_land(table: MemoryTable) -> None:
    """Each is tried again on what the others left."""
    threads = [threading.Thread(target=table.append, args=([{"day": DAY, "account": f"t{n}"}],)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert accounts(table) == ["a", "b", *(f"t{n}" for n in range(6))]


def test_an_older_snapshot_reads_as_it_was(table: MemoryTable) -> None:
    """An overwrite replaces the partitions of its rows and no other."""
    before = table.metadata.refs[MAIN].snapshot_id
    table.overwrite([{"day": DAY, "account": "new"}])
    assert (accounts(table), accounts(table, before)) == (["b", "new"], ["a", "b"])


def test_a_delete_file_hides_older_rows_only(table: MemoryTable) -> None:
    """A row with the same values that is written later is there."""
    table.delete(DAY, account="a")
    assert accounts(table) == ["b"]
    table.append([{"day": DAY, "account": "a"}])
    assert accounts(table) == ["a", "b"]


def test_a_compaction_keeps_the_rows_and_replaces_the_files(table: MemoryTable) -> None:
    """Several files of a day become one, without the rows that delete files hid."""
    table.append([{"day": DAY, "account": "c"}])
    table.delete(DAY, account="a")
    before = accounts(table)
    table.compact()
    head = table.metadata.head
    assert head is not None
    assert (accounts(table), len(head.files), head.operation) == (before, 2, "replace")


def test_a_column_is_known_by_its_field_id(table: MemoryTable) -> None:
    """A renamed column keeps its values; one that was dropped and added again has none."""
    table.change_columns(lambda old: [old[0], replace(old[1], name="who")])
    assert sorted(row["who"] for row in table.rows()) == ["a", "b"]
    table.change_columns(lambda old: [old[0]])
    table.change_columns(lambda old: [*old, Field(0, "who", "string")])
    assert [row["who"] for row in table.rows()] == [None, None]
    assert table.metadata.schema.find("who").field_id == 3


def test_an_expiry_keeps_what_refs_hold(table: MemoryTable) -> None:
    """Main keeps its head; a tag keeps its snapshot; the guard stays, because it never expires."""
    first = table.metadata.refs[MAIN].snapshot_id
    table.append([{"day": DAY, "account": "c"}])
    second = table.metadata.refs[MAIN].snapshot_id
    table.commit(lambda draft: draft.set_ref("kept", first, age_ms=10_000))
    guard, _ = ensure_guard(table)
    table.append([{"day": DAY, "account": "d"}])
    table.expire(older_than_ms=table.now_ms() + 1000)
    assert set(table.metadata.snapshots) == {first, guard, table.metadata.refs[MAIN].snapshot_id}
    assert second not in table.metadata.snapshots


def test_a_value_that_does_not_fit_its_column_is_refused(table: MemoryTable) -> None:
    """Neither another type nor an unknown column gets in."""
    with pytest.raises(TypeError, match="expected string"):
        table.append([{"day": DAY, "account": 3}])
    with pytest.raises(KeyError, match="no column amount"):
        table.append([{"day": DAY, "amount": 3}])
