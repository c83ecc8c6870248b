"""Any order of publications and rollbacks of overlapping runs leaves what a stack per partition says."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from errata.errors import ScopeLocked, StateRefused
from errata.ledger import Ledger, PublicationRecord
from errata.model.run import RunState
from support.memory import in_memory
from unit.ledger.machines import SIZES, follow
from unit.ledger.steps import TABLE, intend, run_in, settle

DAYS = ("2026-01-01", "2026-01-02")
RUNS = ("bf-1", "bf-2", "bf-3")
SCOPES = (DAYS[:1], DAYS[1:], DAYS)
KINDS = ("publish", "rollback")
EMPTY: list[Path] = []
S = RunState


class PublicationMachine(RuleBasedStateMachine):
    """Drives a real ledger beside one stack of runs for each day."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="errata-machine-", dir=in_memory()))
        shutil.copy(EMPTY[0], self.directory / "ledger.db")
        self.ledger = Ledger.open(f"sqlite:///{self.directory}/ledger.db")
        for name in RUNS:
            run_in(self.ledger, S.VALIDATED, name, DAYS)
        self.stacks: dict[str, list[str]] = {day: [] for day in DAYS}
        self.ever: dict[str, set[str]] = {name: set() for name in RUNS}
        self.open: dict[str, PublicationRecord] = {}

    def expected_state(self, name: str) -> RunState:
        if name in self.open and self.open[name].kind == "publish":
            return S.PUBLISHING
        if not self.ever[name]:
            return S.VALIDATED
        if any(stack[-1:] == [name] for stack in self.stacks.values()):
            return S.PUBLISHED if self.ever[name] == set(DAYS) else S.PART_PUBLISHED
        return S.SUPERSEDED if any(name in stack for stack in self.stacks.values()) else S.ROLLED_BACK

    def allowed(self, name: str, days: tuple[str, ...], kind: str) -> bool:
        state = self.expected_state(name)
        locked = {day for pub in self.open.values() for day in pub.partitions}
        if name in self.open or locked & set(days):
            return False
        if kind == "publish":
            fresh = set(days) <= set(DAYS) - self.ever[name]
            return fresh and state in (S.VALIDATED, S.PART_PUBLISHED)
        return all(self.stacks[day][-1:] == [name] for day in days)

    @rule(data=st.data(), outcome=st.sampled_from(["committed", "committed", "committed", "abandoned", None]))
    def act(self, data: st.DataObject, outcome: str | None) -> None:
        """Something that is allowed now, settled at once or left open."""
        acts = [act for act in itertools.product(RUNS, SCOPES, KINDS) if self.allowed(*act)]
        if acts:
            name, days, kind = data.draw(st.sampled_from(acts))
            self.open[name] = intend(self.ledger, name, days, kind)
            if outcome is not None:
                self.settle(name, outcome)

    @rule(name=st.sampled_from(RUNS), days=st.sampled_from(SCOPES), kind=st.sampled_from(KINDS))
    def try_anything(self, name: str, days: tuple[str, ...], kind: str) -> None:
        """What is not allowed is refused and changes nothing."""
        if not self.allowed(name, days, kind):
            with pytest.raises((StateRefused, ScopeLocked)):
                intend(self.ledger, name, days, kind)

    @rule(name=st.sampled_from(RUNS), outcome=st.sampled_from(["committed", "abandoned"]))
    def settle_later(self, name: str, outcome: str) -> None:
        if name in self.open:
            self.settle(name, outcome)

    def settle(self, name: str, outcome: str) -> None:
        pub = self.open.pop(name)
        settle(self.ledger, pub, outcome)
        if outcome == "abandoned":
            return
        for day in pub.partitions:
            if pub.kind == "publish":
                self.stacks[day].append(name)
                self.ever[name].add(day)
            else:
                self.stacks[day].pop()

    @invariant()
    def the_truth_is_the_top_of_each_stack(self) -> None:
        accepted = self.ledger.partitions.accepted(TABLE)
        for day, stack in self.stacks.items():
            assert (accepted[day].run_id if day in accepted else None) == (stack[-1] if stack else None)

    @invariant()
    def every_run_is_in_the_state_its_partitions_add_up_to(self) -> None:
        for name in RUNS:
            assert self.ledger.runs.get(name).state is self.expected_state(name), name

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert {pub.pub_id for pub in self.ledger.publications.list_open()} == {
            pub.pub_id for pub in self.open.values()
        }
        assert self.ledger.audit.verify().ok
        self.ledger.close()
        shutil.rmtree(self.directory)


@pytest.mark.parametrize("size", SIZES)
def test_publications_follow_the_model(empty_ledger: Path, size: tuple[int, int]):
    """Random histories: twenty of up to thirty steps, or many longer ones."""
    EMPTY[:] = [empty_ledger]
    follow(PublicationMachine, size)
