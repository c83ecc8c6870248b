"""Positions in the log of a database, as Debezium tells them, and which of them can be answered. Pure.

A change has the position of its own log record. A transaction becomes visible when it commits, so that a state of the
table is cut by the position of the commit, which only the END event of Debezium's transaction topic has. The order of
log records, of transaction ids and of Kafka offsets are each wrong: a transaction may write early and commit late,
ids are given at the first write, and a connector that starts again delivers again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction: its id, its first change and its commit, as positions in the log."""

    transaction: int
    first: int
    at: int


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """One read of the whole table by the connector: where it is in the log, and which of its ends are in the range."""

    at: int
    rows: int
    has_first: bool
    has_last: bool
    kind: str = "initial"  # initial | incremental

    @property
    def is_whole(self) -> bool:
        """Whether every row of the table at that position is in the range."""
        return self.has_first and self.has_last and self.kind == "initial"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a range of change events holds besides the changes."""

    commits: Sequence[Commit]  # in the order of the transaction topic, each once
    snapshots: Sequence[SnapshotMark]
    transaction_partitions: int = 1  # of the transaction topic
    sources: Sequence[str] = ()  # databases that the events name


def find_refusals(facts: LogFacts, position: int) -> tuple[str, ...]:
    """Why the table cannot be rebuilt at a position; empty if it can, exactly."""
    found = []
    if facts.transaction_partitions != 1:
        found.append(
            f"the transaction topic has {facts.transaction_partitions} partitions, so that an END may be missing while "
            "a later one is there; expected 1"
        )
    if len(facts.sources) > 1:
        found.append(f"the events come from several databases: {', '.join(sorted(facts.sources))}; expected one")
    ends = [commit.at for commit in facts.commits]
    if any(later < earlier for earlier, later in pairwise(ends)):
        found.append("commit positions go back, as after a restore or a failover; positions before and after it differ")
    if not ends or max(ends) < position:
        newest = max(ends, default=0)
        found.append(f"position {position} is after the last commit in the range, {newest}; more may follow before it")
    reached = [mark for mark in facts.snapshots if mark.at <= position]
    if not any(mark.is_whole for mark in reached):
        found.append(f"no whole snapshot is in the range at or before position {position}; expected one to begin with")
    for mark in sorted(facts.snapshots, key=lambda one: one.at)[1:]:
        before = max((end for end in ends if end <= mark.at), default=0)
        if before < position < mark.at:
            found.append(
                f"position {position} is between the commit at {before} and the snapshot at {mark.at}; a connector "
                "that reads the table again may have missed what was committed there"
            )
    for mark in reached:
        if mark.kind != "initial":
            found.append(f"the snapshot at {mark.at} is {mark.kind} and has some keys only; a whole one is needed")
        elif not mark.is_whole:
            lacks = " and ".join(
                name for name, held in (("first", mark.has_first), ("last", mark.has_last)) if not held
            )
            found.append(f"the snapshot at {mark.at} lacks its {lacks} row, so that rows may be missing from it")
    return tuple(found)
