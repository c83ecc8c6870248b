"""Compaction is told from writes by the commits since the base, and by content where commits cannot tell."""

from __future__ import annotations

from errata.model.manifest import ExpectedFile
from errata.model.table import Commit, History, NewDelete, Touch
from errata.publishing.conflict import (
    PartitionChanges,
    classify_changes,
    find_changed_partitions,
    find_deleted_partitions,
)

DAY = "2026-01-01"


def _commit(operation: str, touch: Touch | None = None, *, everything: bool = False, publication: str = "") -> Commit:
    touched = {} if touch is None else {DAY: touch}
    return Commit("7", operation, 0, "app", touched, everything, {"errata.publication": publication})


def _classify(
    history: History, own: frozenset[str] = frozenset(), *, expected: int = 5, live: int = 5
) -> PartitionChanges:
    """The day got another file; it should have this many rows and has that many."""
    sets = [
        {DAY: (ExpectedFile(path, rows, "data"),) if rows else ()} for path, rows in (("old", expected), ("new", live))
    ]
    return classify_changes([DAY], history, *sets, own)


def test_equal_files_are_no_difference_whatever_their_order() -> None:
    """File sets are compared as sets, delete files included."""
    one, two = ExpectedFile("a", 1, "data"), ExpectedFile("b", 1, "data")
    deletes = ExpectedFile("d", 1, "position_deletes")
    assert find_changed_partitions({DAY: (one, two)}, {DAY: (two, one)}) == ()
    assert find_changed_partitions({DAY: (one,)}, {DAY: (one, deletes)}) == (DAY,)
    assert find_changed_partitions({DAY: (one,)}, {}) == (DAY,)


def test_a_balanced_rewrite_is_compaction() -> None:
    """Only replace commits whose rows balance in the partition."""
    assert _classify(History((_commit("replace", Touch(5, 5)),), complete=True)).compacted == (DAY,)


def test_rewrites_that_would_have_changed_the_number_of_rows_prove_nothing() -> None:
    """A write before them is missing from the history, for example one into a day that was empty; content decides."""
    rewrite = History((_commit("replace", Touch(5, 5)),), complete=True)
    for expected, live in ((0, 5), (4, 5), (6, 5)):
        assert _classify(rewrite, expected=expected, live=live).unclear == (DAY,)


def test_anything_but_a_rewrite_is_a_write_even_beside_one() -> None:
    """The write is what the conflict names."""
    write = _commit("append", Touch(1, 0))
    found = _classify(History((_commit("replace", Touch(6, 6)), write), complete=True))
    assert found.written == {DAY: (write,)}


def test_an_overwrite_whose_rows_balance_is_still_a_write() -> None:
    """As many rows as before are not the same rows; only who rewrites says that nothing changed."""
    for operation in ("overwrite", "append", "delete"):
        commit = _commit(operation, Touch(5, 5))
        assert _classify(History((commit,), complete=True)).written == {DAY: (commit,)}, operation


def test_a_rewrite_that_does_not_balance_is_settled_by_content() -> None:
    """Applied deletes change the counts and not the rows."""
    for touch in (Touch(4, 5), Touch(5, 5, added_deletes=1)):
        assert _classify(History((_commit("replace", touch),), complete=True)).unclear == (DAY,)


def test_broken_history_is_settled_by_content() -> None:
    """Expired snapshots, a main rolled back by its owner, another table."""
    found = _classify(History((), complete=False))
    assert found.unclear == (DAY,)
    assert found.resolve_unclear([DAY]).compacted == (DAY,)
    assert found.resolve_unclear([]).written == {DAY: ()}


def test_a_delete_file_of_another_spec_hits_every_partition() -> None:
    """A commit that cannot be placed counts as touching the scope."""
    found = _classify(History((_commit("delete", everything=True),), complete=True))
    assert set(found.written) == {DAY}


def test_our_own_publications_are_no_ones_writes() -> None:
    """On rollback, commits of publications in the ledger made the expected state or were taken back."""
    mine = _commit("overwrite", Touch(3, 3), publication="p1")
    assert set(_classify(History((mine,), complete=True)).written) == {DAY}
    assert _classify(History((mine,), complete=True), frozenset({"p1"})).unclear == (DAY,)


OTHER = "2026-01-02"


def test_a_delete_file_in_a_partition_is_a_write_of_its_commit() -> None:
    """Of any kind, and in no other partition."""
    commit = _commit("overwrite")
    for content in ("equality_deletes", "position_deletes"):
        found = find_deleted_partitions([NewDelete("f", content, DAY, (), commit)], [DAY, OTHER], {})
        assert found == {DAY: (commit,)}
    assert (
        find_deleted_partitions([NewDelete("f", "equality_deletes", "2026-02-01", (), commit)], [DAY, OTHER], {}) == {}
    )


def test_an_equality_delete_that_cannot_be_placed_hits_all_that_it_may_be_about() -> None:
    """A global one of another spec deletes rows wherever they are."""
    found = find_deleted_partitions([NewDelete("f", "equality_deletes", None, (DAY, OTHER))], [DAY, OTHER], {})
    assert found == {DAY: (), OTHER: ()}


def test_a_position_delete_that_cannot_be_placed_is_left_to_the_file_that_it_is_about() -> None:
    """It shows among the deletes of a live shared file, whose content tells whether rows of the scope are gone."""
    assert find_deleted_partitions([NewDelete("f", "position_deletes", None, (DAY,))], [DAY], {}) == {}


def test_delete_files_that_were_expected_and_our_own_are_no_writes() -> None:
    """Where the base has expired and nothing tells what is newer, all delete files are looked at."""
    known = {DAY: (ExpectedFile("f", 1, "equality_deletes"),)}
    assert find_deleted_partitions([NewDelete("f", "equality_deletes", DAY)], [DAY], known) == {}
    mine = _commit("overwrite", publication="p1")
    assert (
        find_deleted_partitions([NewDelete("f", "equality_deletes", DAY, (), mine)], [DAY], {}, frozenset({"p1"})) == {}
    )


def test_partitions_with_new_delete_files_are_written_whatever_the_files_say() -> None:
    """Compacted or unclear otherwise; where the commits told of a write already, all of them are named."""
    write, gone = _commit("append"), _commit("overwrite")
    found = PartitionChanges((DAY,), {}, (OTHER,)).mark_written({DAY: (gone,), OTHER: ()})
    assert (found.compacted, found.unclear, found.written) == ((), (), {DAY: (gone,), OTHER: ()})
    assert PartitionChanges(written={DAY: (write, gone)}).mark_written({DAY: (gone,)}).written == {DAY: (write, gone)}
