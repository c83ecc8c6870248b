"""Which audit entries owe lineage, and which events a run has whatever happens to it."""

from __future__ import annotations

import random
from typing import Any

from errata.delivery.lineage.lineage_items import UNTIL, LineageRule
from errata.model.audit import Actor, AuditEntry
from errata.model.consumer.outbox import Effect
from errata.model.lineage.moments import EventKind, Subject, list_moments
from errata.model.run import RUN_MOVES, RunState

ANA = Actor("ana", "ana", "desk")


def build_entry(seq: int, action: str, at: str = "2026-01-01T00:00:00Z", **body: Any) -> AuditEntry:
    return AuditEntry(seq, "", "", at, ANA, action, "bf-1", body)


def build_move(seq: int, before: str, after: str) -> AuditEntry:
    return build_entry(seq, f"run.{after}", move={"from": before, "to": after})


def test_every_history_of_a_run_has_one_start_before_each_end() -> None:
    """A thousand histories that the ledger allows: START and ends alternate, and each pair has a number of its own."""
    choose = random.Random(65)  # noqa: S311 - the same histories every time
    for _ in range(1000):
        state, entries = RunState.PLANNED, []
        while (ways := sorted(RUN_MOVES[state])) and len(entries) < 30:
            after = choose.choice(ways)
            entries.append(build_move(len(entries) + 1, state.value, after.value))
            state = after
        moments = [one for one in list_moments(entries, 0, 99) if one.subject is Subject.CORRECTION]
        kinds = [one.kind is EventKind.START for one in moments]
        assert kinds == [n % 2 == 0 for n in range(len(kinds))]
        assert [one.attempt for one in moments] == [n // 2 + 1 for n in range(len(kinds))]


def test_a_stretch_has_exactly_the_moments_in_it() -> None:
    """Whatever the cuts are, the stretches together have every moment once."""
    entries = [
        build_move(1, "approved", "running"),
        build_entry(2, "note.added"),
        build_move(3, "running", "failed"),
        build_move(4, "failed", "running"),
        build_entry(5, "chunk.adopted"),
        build_move(6, "running", "staged"),
    ]
    whole = list_moments(entries, 0, 6)
    assert [one.seq for one in whole] == [1, 3, 4, 5]
    for cut in range(7):
        assert (*list_moments(entries, 0, cut), *list_moments(entries, cut, 6)) == whole


def test_chunks_are_owed_together_once_a_minute() -> None:
    """The first that ends a minute after the last item owes one; a change of the run owes one at once."""
    rule = LineageRule()
    start = [*rule.choose([build_move(1, "approved", "running")])]
    assert [(owed.effect, owed.payload) for _, owed in start] == [(Effect.LINEAGE, {UNTIL: 1})]
    owed = []
    for second in range(2, 150):
        at = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
        owed += [entry.seq for entry, _ in rule.choose([build_entry(second, "chunk.adopted", at)])]
    assert owed == [60, 120]
    assert [entry.seq for entry, _ in rule.choose([build_move(200, "running", "failed")])] == [200]


def test_a_transaction_owes_one_item_for_its_last_moment() -> None:
    """Entries that are no moments owe nothing."""
    rule = LineageRule()
    assert [*rule.choose([build_entry(1, "refused"), build_entry(2, "chunk.claimed")])] == []
    both = [build_entry(3, "rollback.committed"), build_move(4, "part_published", "rolled_back"), build_entry(5, "x")]
    assert [entry.seq for entry, _ in rule.choose(both)] == [4]
