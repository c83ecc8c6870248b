"""Any order of publications and rollbacks of overlapping runs leaves what a stack per partition says."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from errata.errors import ScopeLocked, StateRefused
from errata.ledger import Ledger, PublicationRecord
from errata.model.run import RunState
from unit.ledger.steps import DAYS, TABLE, intend, run_in, settle

RUNS = {"bf-1": DAYS, "bf-2": DAYS[:2], "bf-3": DAYS[1:]}
EMPTY: list[Path] = []
S = RunState


class PublicationMachine(RuleBasedStateMachine):
    """Drives a real ledger beside one stack of runs for each day."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="errata-machine-"))
        shutil.copy(EMPTY[0], self.directory / "ledger.db")
        self.ledger = Ledger.open(f"sqlite:///{self.directory}/ledger.db")
        for name, days in RUNS.items():
            run_in(self.ledger, S.VALIDATED, name, days)
        self.stacks: dict[str, list[str]] = {day: [] for day in DAYS}
        self.ever: dict[str, set[str]] = {name: set() for name in RUNS}
        self.open: dict[str, PublicationRecord] = {}

    def expected_state(self, name: str) -> RunState:
        if name in self.open and self.open[name].kind == "publish":
            return S.PUBLISHING
        if not self.ever[name]:
            return S.VALIDATED
        if any(stack[-1:] == [name] for stack in self.stacks.values()):
            return S.PUBLISHED if self.ever[name] == set(RUNS[name]) else S.PART_PUBLISHED
        return S.SUPERSEDED if any(name in stack for stack in self.stacks.values()) else S.ROLLED_BACK

    def allowed(self, name: str, days: list[str], kind: str) -> bool:
        state = self.expected_state(name)
        locked = {day for pub in self.open.values() for day in pub.partitions}
        if name in self.open or locked & set(days):
            return False
        if kind == "publish":
            fresh = set(days) <= set(RUNS[name]) - self.ever[name]
            return fresh and state in (S.VALIDATED, S.PART_PUBLISHED)
        return all(self.stacks[day][-1:] == [name] for day in days)

    @rule(
        name=st.sampled_from(sorted(RUNS)),
        days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True),
        kind=st.sampled_from(["publish", "rollback"]),
    )
    def intend(self, name: str, days: list[str], kind: str) -> None:
        allowed = self.allowed(name, days, kind)
        try:
            self.open[name] = intend(self.ledger, name, days, kind)
        except (StateRefused, ScopeLocked):
            assert not allowed
        else:
            assert allowed

    @rule(name=st.sampled_from(sorted(RUNS)), outcome=st.sampled_from(["committed", "committed", "abandoned"]))
    def settle(self, name: str, outcome: str) -> None:
        pub = self.open.pop(name, None)
        if pub is None:
            return
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
        accepted = self.ledger.accepted(TABLE)
        for day, stack in self.stacks.items():
            assert (accepted[day].run_id if day in accepted else None) == (stack[-1] if stack else None)

    @invariant()
    def every_run_is_in_the_state_its_partitions_add_up_to(self) -> None:
        for name in RUNS:
            assert self.ledger.run(name).state is self.expected_state(name), name

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert {pub.pub_id for pub in self.ledger.open_publications()} == {pub.pub_id for pub in self.open.values()}
        assert self.ledger.verify_audit().ok
        self.ledger.close()
        shutil.rmtree(self.directory)


def test_publications_follow_the_model(empty_ledger: Path):
    """Twenty random histories of up to thirty steps."""
    EMPTY[:] = [empty_ledger]
    PublicationMachine.TestCase.settings = settings(
        max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    PublicationMachine.TestCase("runTest").runTest()
