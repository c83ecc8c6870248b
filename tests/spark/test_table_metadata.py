"""Rules of the Iceberg adapter that metadata alone can show: one swap, what is listed, guard, branches and history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.iceberg.commits.refs import count_manifests, drop_refs, ensure_guard, open_branch
from errata.errors import RunExpired
from errata.model.partition import NULL, Grain, from_ordinal
from errata.model.refs import DAY_MS, GUARD
from support.bare import ACCOUNT, AT, DAY, BareTable, days, publishing

ONE, TWO, THREE = "2026-01-01", "2026-01-02", "2026-01-03"
HOUR_MICROS = 3_600_000_000


# -------------------------------------------------------------------------------------------------------------- commits


def test_a_commit_is_one_swap_of_the_version_that_it_was_begun_on(table: BareTable) -> None:
    """Whoever comes second is refused, is not tried again, and takes nothing of the first along."""
    before = table.refs()
    with table.java.commit(table.name) as first, table.java.commit(table.name) as second:
        first.createTag("first", int(before["main"]))
        second.startAppend(None)
        second.finish()
        first.swap()
        with pytest.raises(Py4JJavaError, match="CommitFailedException"):
            second.swap()
    assert table.refs() == {**before, "first": before["main"]}


def test_files_are_listed_by_partition_however_many_and_scattered_the_partitions_are(java: JavaIceberg) -> None:
    """A scope of many partitions only prunes; which files are meant is told by their own values."""
    table = BareTable(java)
    names = [from_ordinal(Grain.DAY, days(ONE) + n) for n in range(261)]
    files = {name: table.file(name) for name in names}
    head = table.append(*files.values())
    wanted = [name for n, name in enumerate(names) if n % 2 == 0]
    found = table.java.live(table.load(), head, table.target, wanted)
    assert sorted(file.partition or "" for file in found) == wanted
    assert {file.path for file in found} == {str(files[name].location()) for name in wanted}


def test_files_are_listed_after_the_partition_column_was_renamed(java: JavaIceberg) -> None:
    """At main's head, where Iceberg uses the table's current names, and before it, where it uses the snapshot's own."""
    table = BareTable(java)
    first = table.append(table.file(ONE))
    second = table.append(table.file(TWO))
    table.load().updateSchema().renameColumn(table.target.column, "renamed").commit()
    assert [file.partition for file in table.java.live(table.load(), second, table.target, [TWO])] == [TWO]
    assert [file.partition for file in table.java.live(table.load(), first, table.target, [ONE])] == [ONE]


def test_a_table_without_its_partition_column_is_refused_with_a_way_on(java: JavaIceberg) -> None:
    """It was dropped and created again with other columns."""
    table = BareTable(java)
    table.append(table.file(ONE))
    gone = replace(table.target, column="no such column", schema_id=99)
    with pytest.raises(RunExpired, match="has no column") as refused:
        table.java.field(table.load(), gone)
    assert refused.value.hint


def test_null_is_a_partition_like_others(java: JavaIceberg) -> None:
    """Its files are listed when it is asked for, and only then."""
    table = BareTable(java)
    head = table.append(table.file(ONE), table.file(NULL))
    for names in ([NULL], [ONE], [ONE, NULL]):
        found = table.java.live(table.load(), head, table.target, names)
        assert sorted(file.partition or "" for file in found) == sorted(names)


@pytest.mark.parametrize("minute", [0, 59])
def test_an_hour_reaches_from_its_first_microsecond_to_its_last(java: JavaIceberg, minute: int) -> None:
    """A file whose bounds are at either end of the hour is one of its files."""
    table = BareTable(java, Grain.HOUR)
    hour, start = "2026-01-01T10", (days(ONE) * 24 + 10) * HOUR_MICROS
    edge = start + minute * (HOUR_MICROS - 1) // 59
    file = table.file(hour, bounds={AT: (edge, edge)})
    head = table.append(file, table.file("2026-01-01T11"))
    found = table.java.live(table.load(), head, table.target, [hour])
    assert [(each.path, each.partition) for each in found] == [(str(file.location()), hour)]


@pytest.mark.parametrize("sign", ["\n", "\x1f", "\\", "\x00"])
def test_a_path_may_hold_what_separates_records(table: BareTable, sign: str) -> None:
    """It is listed as it is, and found again when it is to be taken out."""
    odd = f"{table.load().location()}/data/a{sign}b{sign}n.parquet"
    head = table.append(table.file(ONE, odd))
    assert odd in {file.path for file in table.java.live(table.load(), head, table.target, [ONE])}
    order = table.commit("bf-1-p1-0000", head, partitions=(ONE,), remove=(odd,))
    ensure_guard(table.java, table.name)
    publishing(table).version(table.target).commit(order)
    assert odd not in table.paths()


# --------------------------------------------------------------------------------------------------- guard and branches


def is_empty_root(table: BareTable, snapshot_id: str) -> bool:
    """Whether a snapshot has neither files nor a parent that is there."""
    handle = table.load()
    parent = handle.snapshot(int(snapshot_id)).parentId()
    return count_manifests(handle, snapshot_id) == 0 and (parent is None or handle.snapshot(parent) is None)


def test_the_guard_is_an_empty_root_and_main_stays(table: BareTable) -> None:
    """It lists nothing and leads nowhere, it is there for ever, and it is made once."""
    before = table.refs()
    guard, is_new = ensure_guard(table.java, table.name)
    assert is_new
    assert is_empty_root(table, guard)
    assert table.refs() == {**before, GUARD: guard}
    assert table.ref(GUARD).maxRefAgeMs() > 30_000 * DAY_MS
    assert ensure_guard(table.java, table.name) == (guard, False)


def test_a_guard_that_lists_files_is_made_anew(table: BareTable) -> None:
    """A branch that somebody made from main under this name keeps every file of the table alive for ever."""
    table.load().manageSnapshots().createBranch(GUARD).commit()
    guard, is_new = ensure_guard(table.java, table.name)
    assert is_new
    assert is_empty_root(table, guard)
    assert table.refs()[GUARD] == guard


def test_a_table_without_a_snapshot_gets_one_with_its_guard(java: JavaIceberg) -> None:
    """Candidates and tags are made from main's head, so main needs one."""
    table = BareTable(java)
    guard, _ = ensure_guard(table.java, table.name)
    assert is_empty_root(table, guard)
    assert table.paths("main") == set()


def test_a_branch_holds_what_is_written_to_it_and_an_expiry_keeps_every_snapshot_of_it(table: BareTable) -> None:
    """Nothing of main is on it; the oldest snapshot on it is as safe as the newest; opened again it stays."""
    opened = open_branch(table.java, table.name, "errata_b", 45)
    assert table.paths("errata_b") == set()
    made = [table.written("errata_b", f"mark {n}", table.file(ONE)) for n in range(3)]
    assert open_branch(table.java, table.name, "errata_b", 45) == made[-1]
    assert table.ref("errata_b").maxRefAgeMs() == 45 * DAY_MS
    table.expire()
    assert all(table.load().snapshot(int(each)) is not None for each in (opened, *made))


def test_one_mark_is_one_append(table: BareTable) -> None:
    """Who appends again under a mark that has landed gets the first one's snapshot, and the branch its files once."""
    open_branch(table.java, table.name, "errata_b", 7)
    first, second = table.file(ONE), table.file(ONE)
    assert table.written("errata_b", "mark", first) == table.written("errata_b", "mark", second)
    assert table.paths("errata_b") == {str(first.location())}


def test_nothing_is_appended_to_a_branch_that_is_gone(table: BareTable) -> None:
    """Iceberg would bring it back from main, with everybody's files on it."""
    open_branch(table.java, table.name, "errata_b", 7)
    table.load().manageSnapshots().removeBranch("errata_b").commit()
    with pytest.raises(RunExpired, match="errata_b"):
        table.written("errata_b", "mark", table.file(ONE))
    assert "errata_b" not in table.refs()


def test_refs_are_dropped_in_one_commit_and_those_that_are_gone_are_left_out(table: BareTable) -> None:
    """Branches and tags alike; nothing else goes."""
    open_branch(table.java, table.name, "errata_b", 7)
    table.load().manageSnapshots().createTag("errata_t", int(table.refs()["main"])).commit()
    versions = table.load().operations().current().previousFiles().size()
    assert drop_refs(table.java, table.name, ["errata_b", "gone", "errata_t"]) == ("errata_b", "errata_t")
    assert set(table.refs()) == {"main", GUARD}
    assert table.load().operations().current().previousFiles().size() == versions + 1


# -------------------------------------------------------------------------------------------------------------- history


def test_history_goes_back_to_the_base_commit_by_commit(table: BareTable) -> None:
    """Newest first, each with what it did to the partitions; a base that main does not lead back to is not reached."""
    base = table.refs()["main"]
    made = [table.append(table.file(day, rows=5)) for day in (ONE, TWO)]
    history = publishing(table).version(table.target).history(base, (ONE,))
    assert [commit.snapshot_id for commit in history.commits] == made[::-1]
    assert [dict(commit.touched) for commit in history.commits] != [{}, {}]
    assert history.commits[1].touched[ONE].added_rows == 5
    assert history.complete
    table.load().manageSnapshots().rollbackTo(int(base)).commit()
    assert not publishing(table).version(table.target).history(made[0], (ONE,)).complete


def deleted(table: BareTable, delete: Any) -> str:
    """One delete file of a global equality delete, under a spec without partitions."""
    table.load().updateSpec().removeField("day").commit()
    file = delete()
    table.load().newRowDelta().addDeletes(file).commit()
    table.load().updateSpec().addField("day").commit()
    return str(file.location())


def test_a_global_delete_hits_every_partition_unless_the_day_is_among_its_columns(table: BareTable) -> None:
    """Bounds of a delete file are about the rows that it deletes only for columns by which these are told apart."""
    base, at = table.refs()["main"], days(TWO)
    on_two = {DAY: (at, at)}
    by_day = deleted(table, lambda: table.deletes([DAY, ACCOUNT], on_two))
    by_account = deleted(table, lambda: table.deletes([ACCOUNT], on_two))
    version = publishing(table).version(table.target)
    found = {delete.path: delete for delete in version.new_deletes(base, (ONE, TWO))}
    assert found[by_day].may_hit == (TWO,)
    assert found[by_account].may_hit == (ONE, TWO)
    account, day = version.history(base, (ONE,)).commits
    assert (account.touches_everything, day.touches_everything) == (True, False)


def test_deletes_are_told_by_age_where_history_does_not_reach_the_base(table: BareTable) -> None:
    """Those of before a mark are none; those after it are, also when the commit that brought them is gone."""
    before = deleted(table, lambda: table.deletes([ACCOUNT], {}))
    base = table.refs()["main"]
    mark = open_branch(table.java, table.name, "errata_undo", 30)
    after = deleted(table, lambda: table.deletes([ACCOUNT], {}))
    table.append(table.file(ONE))
    table.append(table.file(ONE))
    table.expire()
    assert table.load().snapshot(int(base)) is None
    version = publishing(table).version(table.target)
    assert {one.path for one in version.new_deletes(base, (ONE,), (mark,))} == {after}
    assert {one.path for one in version.new_deletes(base, (ONE,))} == {before, after}
