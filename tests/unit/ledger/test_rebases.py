"""Partitions that live won: one transaction with their chunks, on both databases."""

from __future__ import annotations

import pytest

from errata.canonical import sha256
from errata.errors import StateRefused
from errata.ledger import Ledger, RunRecord
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState
from unit.ledger.steps import ANA, BO, DAYS, actions, adopt, bring, judge, must_claim, plan

S = RunState
PART = b"pins"
VALUE = {"partitions": [DAYS[1]], "written": [DAYS[1]], "snapshots": ["9"], "pins_part": sha256(PART)}


@pytest.fixture
def validated(ledger: Ledger) -> Ledger:
    """Every chunk is adopted, and the gate passed a candidate."""
    plan(ledger)
    bring(ledger, "bf-1", S.RUNNING)
    for _ in DAYS:
        adopt(ledger, must_claim(ledger))
    ledger.runs.move("bf-1", S.STAGED, actor=ANA)
    ledger.candidates.intend("bf-1", "d1", ANA)
    ledger.candidates.record("bf-1", 1, "1", "2", ANA)
    judge(ledger, passed=True)
    return ledger


def rebase(ledger: Ledger, n: int = 1) -> RunRecord:
    return ledger.rebases.record("bf-1", n, VALUE, [Chunk("", (DAYS[1],), 10, 100)], {sha256(PART): PART}, BO)


def test_a_rebase_adds_chunks_gives_up_the_candidate_and_lets_workers_claim(validated: Ledger):
    """The chunks that were done stay done, with their attempts; only the new one can be claimed."""
    assert rebase(validated).state is S.RUNNING
    assert actions(validated)[-4:] == ["fact.rebase.1", "chunks.added", "candidate.abandoned", "run.rebased"]
    newest = validated.progress.chunks("bf-1")[-1]
    assert (newest.partitions, newest.state, newest.origin) == ((DAYS[1],), ChunkState.PENDING, "rebase.1")
    assert validated.facts.list("bf-1")["rebase.1"]["chunks"] == [newest.chunk_id]
    assert [one.state for one in validated.progress.chunks("bf-1")[:-1]] == [ChunkState.DONE] * 3
    assert validated.parts.get(sha256(PART)) == PART
    attempt = must_claim(validated)
    assert (attempt.chunk_id, attempt.partitions, attempt.fence) == (newest.chunk_id, (DAYS[1],), 1)
    adopt(validated, attempt, "77")
    assert validated.progress.counts("bf-1").done == validated.progress.counts("bf-1").total == 4
    assert validated.audit.verify().ok


def test_the_same_rebase_again_changes_nothing(validated: Ledger):
    """Whoever lost the answer, or found the same conflict at the same time, goes on from what is there."""
    rebase(validated)
    before = actions(validated)
    assert rebase(validated).state is S.RUNNING
    assert actions(validated) == before


@pytest.mark.parametrize("state", [S.PLANNED, S.RUNNING, S.REJECTED, S.PART_PUBLISHED, S.PUBLISHED, S.CANCELLED])
def test_only_what_is_staged_and_not_published_goes_back_to_work(ledger: Ledger, state: RunState):
    """Anything else is refused as a whole."""
    plan(ledger)
    bring(ledger, "bf-1", state)
    with pytest.raises(StateRefused):
        rebase(ledger)
    assert ledger.facts.list("bf-1") == {}
    assert len(ledger.progress.chunks("bf-1")) == len(DAYS)
