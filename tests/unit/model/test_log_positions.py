"""Positions in the log of a database: which can be answered exactly, and why others cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.kafka.log_positions import Commit, LogFacts, SnapshotMark, find_refusals

WHOLE = SnapshotMark(100, 5, has_first=True, has_last=True)
FACTS = LogFacts((Commit(7, 110, 150), Commit(6, 105, 200), Commit(9, 210, 300)), (WHOLE,), 1, ("shop",))


def test_a_position_between_a_whole_snapshot_and_the_last_commit_is_answered() -> None:
    """Also one at which a transaction is open that wrote before others committed."""
    assert find_refusals(FACTS, 150) == ()
    assert find_refusals(FACTS, 300) == ()


@pytest.mark.parametrize(
    "facts,position,said",
    [
        (FACTS, 301, "position 301 is after the last commit in the range, 300"),
        (FACTS, 99, "no whole snapshot is in the range at or before position 99"),
        (replace(FACTS, commits=()), 150, "position 150 is after the last commit in the range, 0"),
        (replace(FACTS, transaction_partitions=2), 150, "the transaction topic has 2 partitions"),
        (replace(FACTS, sources=("shop", "copy")), 150, "several databases: copy, shop"),
        (replace(FACTS, commits=(*FACTS.commits, Commit(10, 120, 160))), 150, "commit positions go back"),
        (replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=140, kind="incremental"))), 150, "at 140 is incremental"),
        (replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=140, has_last=False))), 150, "at 140 lacks its last row"),
        (
            replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=250))),
            230,
            "between the commit at 200 and the snapshot at 250",
        ),
    ],
)
def test_a_position_that_cannot_be_answered_exactly_is_refused(facts: LogFacts, position: int, said: str) -> None:
    """Each reason is named; a wrong table is worse than none."""
    assert any(said in told for told in find_refusals(facts, position))


def test_a_new_snapshot_leaves_earlier_commits_answerable() -> None:
    """Up to the last commit that was told before it, and from the snapshot on."""
    facts = replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=250)))
    assert find_refusals(facts, 200) == ()
    assert find_refusals(facts, 250) == ()
