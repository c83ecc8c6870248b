"""Compaction is told from writes by the commits since the base, and by content where commits cannot tell."""

from __future__ import annotations

from errata.model.manifest import ExpectedFile
from errata.model.table import Commit, History, Touch
from errata.publisher.conflict import differing, judge

DAY = "2026-01-01"


def _commit(operation: str, touch: Touch | None = None, *, everything: bool = False, publication: str = "") -> Commit:
    touched = {} if touch is None else {DAY: touch}
    return Commit("7", operation, 0, "app", touched, everything, {"errata.publication": publication})


def test_equal_files_are_no_difference_whatever_their_order() -> None:
    """File sets are compared as sets, delete files included."""
    one, two = ExpectedFile("a", 1, "data"), ExpectedFile("b", 1, "data")
    deletes = ExpectedFile("d", 1, "position_deletes")
    assert differing({DAY: (one, two)}, {DAY: (two, one)}) == ()
    assert differing({DAY: (one,)}, {DAY: (one, deletes)}) == (DAY,)
    assert differing({DAY: (one,)}, {}) == (DAY,)


def test_a_balanced_rewrite_is_compaction() -> None:
    """Only replace commits whose rows balance in the partition."""
    assert judge([DAY], History((_commit("replace", Touch(5, 5)),), complete=True)).compacted == (DAY,)


def test_anything_but_a_rewrite_is_a_write_even_beside_one() -> None:
    """The write is what the conflict names."""
    write = _commit("append", Touch(1, 0))
    found = judge([DAY], History((_commit("replace", Touch(6, 6)), write), complete=True))
    assert found.written == {DAY: (write,)}


def test_an_overwrite_whose_rows_balance_is_still_a_write() -> None:
    """As many rows as before are not the same rows; only who rewrites says that nothing changed."""
    for operation in ("overwrite", "append", "delete"):
        commit = _commit(operation, Touch(5, 5))
        assert judge([DAY], History((commit,), complete=True)).written == {DAY: (commit,)}, operation


def test_a_rewrite_that_does_not_balance_is_settled_by_content() -> None:
    """Applied deletes change the counts and not the rows."""
    for touch in (Touch(4, 5), Touch(5, 5, added_deletes=1)):
        assert judge([DAY], History((_commit("replace", touch),), complete=True)).unclear == (DAY,)


def test_broken_history_is_settled_by_content() -> None:
    """Expired snapshots, a main rolled back by its owner, another table."""
    found = judge([DAY], History((), complete=False))
    assert found.unclear == (DAY,)
    assert found.settled([DAY]).compacted == (DAY,)
    assert found.settled([]).written == {DAY: ()}


def test_a_delete_file_of_another_spec_hits_every_partition() -> None:
    """A commit that cannot be placed counts as touching the scope."""
    found = judge([DAY], History((_commit("delete", everything=True),), complete=True))
    assert set(found.written) == {DAY}


def test_our_own_publications_are_no_ones_writes() -> None:
    """On rollback, commits of publications in the ledger made the expected state or were taken back."""
    mine = _commit("overwrite", Touch(3, 3), publication="p1")
    assert set(judge([DAY], History((mine,), complete=True)).written) == {DAY}
    assert judge([DAY], History((mine,), complete=True), frozenset({"p1"})).unclear == (DAY,)
