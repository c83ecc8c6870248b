"""Any order of claims, heartbeats, takeovers, crashes and results leaves the ledger where a small model says."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from errata.errors import AttemptLost
from errata.ledger import AttemptRecord, Ledger, Owner
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.run import AttemptState, ChunkState, RunState
from support.memory import in_memory
from unit.ledger.machines import SIZES, follow
from unit.ledger.steps import ANA, adopt, bring, plan

CHUNKS, CAP = 3, 3
C = ChunkState
OWNERS = [Owner(f"w{n}", "host", n, "s") for n in range(3)]
LEASES = st.sampled_from([0.0, 3600.0])


def capped(loss: FailedAttempt) -> ChunkOutcome:
    """Again, up to a cap."""
    return ChunkOutcome(C.PENDING if loss.tries < CAP else C.QUARANTINED)


@dataclass
class Slot:
    """What the model knows of a chunk."""

    state: ChunkState = C.PENDING
    fence: int = 0
    tries: int = 0
    expired: bool = False
    owner: Owner | None = None
    snapshot: str | None = None


@dataclass
class Model:
    """The rules again, as short as they can be said."""

    slots: list[Slot] = field(default_factory=lambda: [Slot() for _ in range(CHUNKS)])
    dead: set[Owner] = field(default_factory=set)
    running: bool = True

    def claim(self, owner: Owner, lease: float) -> int | None:
        if not self.running:
            return None
        for slot in self.slots:
            if slot.state is C.RUNNING and (slot.expired or slot.owner in self.dead):
                slot.state = C.PENDING if slot.tries < CAP else C.QUARANTINED
        for n, slot in enumerate(self.slots):
            if slot.state is C.PENDING:
                return self._take(n, owner, lease)
        return None

    def _take(self, n: int, owner: Owner, lease: float) -> int:
        slot = self.slots[n]
        slot.state, slot.fence, slot.tries = C.RUNNING, slot.fence + 1, slot.tries + 1
        slot.owner, slot.expired = owner, lease == 0
        return n

    def holds(self, attempt: AttemptRecord) -> Slot | None:
        slot = self.slots[int(attempt.chunk_id[1:])]
        return slot if slot.state is C.RUNNING and slot.fence == attempt.fence else None


class ChunkMachine(RuleBasedStateMachine):
    """Drives a real ledger and the model side by side."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="errata-machine-", dir=in_memory()))
        shutil.copy(EMPTY[0], self.directory / "ledger.db")
        self.ledger = Ledger.open(f"sqlite:///{self.directory}/ledger.db")
        plan(self.ledger, chunks=CHUNKS)
        bring(self.ledger, "bf-1", RunState.RUNNING)
        self.model = Model()
        self.attempts: list[AttemptRecord] = []

    @rule(owner=st.sampled_from(OWNERS), lease=LEASES)
    def claim(self, owner: Owner, lease: float) -> None:
        if owner in self.model.dead:
            return
        expected = self.model.claim(owner, lease)
        found = self.ledger.chunks.claim(
            "bf-1", owner, lease_seconds=lease, actor=ANA, after_loss=capped, is_dead=lambda o: o in self.model.dead
        )
        assert (found and int(found.chunk_id[1:])) == expected
        if found is not None:
            assert found.fence == self.model.slots[int(found.chunk_id[1:])].fence
            self.attempts.append(found)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), lease=LEASES)
    def heartbeat(self, data: st.DataObject, lease: float) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        slot = self.model.holds(attempt)
        assert self.ledger.chunks.heartbeat(attempt, lease) == (slot is not None)
        if slot is not None:
            slot.expired = lease == 0

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), snapshot=st.sampled_from(["1", "2"]))
    def adopt(self, data: st.DataObject, snapshot: str) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        slot = self.model.slots[int(attempt.chunk_id[1:])]
        again = slot.state is C.DONE and (slot.fence, slot.snapshot) == (attempt.fence, snapshot)
        try:
            adopt(self.ledger, attempt, snapshot)
        except AttemptLost:
            assert self.model.holds(attempt) is None
            assert not again
        else:
            assert again or self.model.holds(attempt) is not None
            slot.state, slot.snapshot = C.DONE, snapshot

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        slot = self.model.holds(attempt)
        try:
            self.ledger.chunks.fail(attempt, error_code="x", message="y", actor=ANA)
        except AttemptLost:
            assert slot is None
        else:
            assert slot is not None
            slot.state = C.FAILED

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        slot = self.model.holds(attempt)
        assert self.ledger.chunks.give_back(attempt, actor=ANA) == (slot is not None)
        if slot is not None:
            slot.state, slot.tries = C.PENDING, slot.tries - 1

    @rule()
    def retry(self) -> None:
        again = [slot for slot in self.model.slots if slot.state in (C.FAILED, C.QUARANTINED)]
        assert len(self.ledger.outcomes.retry("bf-1", None, ANA)) == len(again)
        for slot in again:
            slot.state, slot.tries = C.PENDING, 0

    @rule(owner=st.sampled_from(OWNERS[1:]))
    def crash(self, owner: Owner) -> None:
        self.model.dead.add(owner)

    @rule()
    def pause_or_resume(self) -> None:
        self.model.running = not self.model.running
        self.ledger.runs.move("bf-1", RunState.RUNNING if self.model.running else RunState.PAUSED, actor=ANA)

    @rule()
    def reopen(self) -> None:
        """A new process sees the same."""
        self.ledger.close()
        self.ledger = Ledger.open(f"sqlite:///{self.directory}/ledger.db", create=False)

    @invariant()
    def ledger_agrees_with_the_model(self) -> None:
        found = [
            (chunk.state, chunk.fence, chunk.tries, chunk.snapshot_id) for chunk in self.ledger.progress.chunks("bf-1")
        ]
        assert found == [(slot.state, slot.fence, slot.tries, slot.snapshot) for slot in self.model.slots]

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        attempts = self.ledger.progress.attempts("bf-1")
        adopted = [attempt.chunk_id for attempt in attempts if attempt.state is AttemptState.ADOPTED]
        assert len(adopted) == len(set(adopted))
        assert len(attempts) == sum(slot.fence for slot in self.model.slots)
        assert self.ledger.audit.verify().ok
        self.ledger.close()
        shutil.rmtree(self.directory)


EMPTY: list[Path] = []


@pytest.mark.parametrize("size", SIZES)
def test_chunks_follow_the_model(empty_ledger: Path, size: tuple[int, int]):
    """Random histories: twenty of up to thirty steps, or many longer ones."""
    EMPTY[:] = [empty_ledger]
    follow(ChunkMachine, size)
