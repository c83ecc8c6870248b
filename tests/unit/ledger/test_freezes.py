"""Freezes and leases of live writers, on both databases: one of the two may go, never both, and neither for ever."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from errata.errors import StateRefused
from errata.ledger import FreezeRecord, Ledger, Owner, current_owner
from errata.model.run import RunState
from support.clock import later
from support.memory import in_memory
from unit.ledger.machines import SIZES, follow
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ALIVE, ANA, BO, DAYS, TABLE, actions, intend, plan, publish, run_in, settle

S = RunState
IDLE, MOST = 3600.0, 28_800.0


def opened(
    ledger: Ledger, run: str = "bf-1", days: tuple[str, ...] = DAYS, idle: float = IDLE, wave: int = 1
) -> FreezeRecord:
    return ledger.freezes.open_freeze(run, days, idle_seconds=idle, most_seconds=MOST, actor=ANA, wave=wave)


def begun(
    ledger: Ledger, token: str, days: tuple[str, ...] = DAYS[:1], owner: Owner = ALIVE, lease: float = 120.0
) -> tuple[FreezeRecord, ...]:
    return ledger.freezes.begin_live_write(token, TABLE, days, owner, lease)


class TestFreezes:
    """What runs do."""

    def test_a_freeze_turns_live_jobs_away_and_says_which_run(self, ledger: Ledger):
        """Only on its table and partitions; a job that names none stands for all of them."""
        run_in(ledger, S.APPROVED, days=DAYS[:2])
        opened(ledger, days=DAYS[:2])
        assert ledger.freezes.grant_freeze("bf-1", ANA) == ()
        assert [one.run_id for one in begun(ledger, "a")] == ["bf-1"]
        assert [one.run_id for one in begun(ledger, "b", ())] == ["bf-1"]
        assert begun(ledger, "c", DAYS[2:]) == ()
        assert ledger.freezes.begin_live_write("d", "lake.other", DAYS, ALIVE, 60) == ()
        assert [one.run_id for one in ledger.freezes.find_freezes(TABLE, DAYS[1:])] == ["bf-1"]
        assert actions(ledger)[-2:] == ["freeze.opened", "freeze.granted"]
        assert ledger.audit.verify().ok

    def test_a_freeze_waits_for_who_writes_already_and_lets_nobody_in_meanwhile(self, ledger: Ledger):
        """Open, it turns new jobs away; it is granted when the last of the old ones has ended."""
        run_in(ledger, S.APPROVED)
        assert begun(ledger, "a") == begun(ledger, "b", ()) == ()
        assert opened(ledger).granted_at is None
        assert [one.token for one in ledger.freezes.grant_freeze("bf-1", ANA)] == ["a", "b"]
        assert begun(ledger, "c", DAYS[1:]) != ()
        assert ledger.freezes.renew_live_write("a", 120)
        ledger.freezes.end_live_write("a")
        assert [one.token for one in ledger.freezes.grant_freeze("bf-1", ANA)] == ["b"]
        ledger.freezes.end_live_write("b")
        assert ledger.freezes.grant_freeze("bf-1", ANA) == ()
        granted = next(iter(ledger.freezes.list("bf-1")), None)
        assert granted is not None
        assert granted.granted_at is not None

    def test_a_live_job_that_is_silent_or_gone_is_not_waited_for(self, ledger: Ledger):
        """Its lease is taken back, so that it learns it; without a freeze a lease that ran out goes on."""
        run_in(ledger, S.APPROVED)
        gone = Owner("w", current_owner().host, 2**22 + 1, current_owner().started.rpartition("/")[0] + "/1")
        begun(ledger, "silent", lease=0)
        assert ledger.freezes.renew_live_write("silent", 0), "nobody wants it"
        begun(ledger, "dead", owner=gone)
        opened(ledger)
        assert ledger.freezes.grant_freeze("bf-1", ANA) == ()
        assert not ledger.freezes.renew_live_write("silent", 120)
        assert not ledger.freezes.renew_live_write("dead", 120)
        assert ledger.freezes.live_writes(TABLE) == ()

    def test_a_silent_job_that_wakes_before_the_freeze_is_granted_has_lost_its_lease(self, ledger: Ledger):
        """Nobody can tell how long it slept; from the opening on only leases that never ran out are waited for."""
        run_in(ledger, S.APPROVED)
        begun(ledger, "a", lease=0)
        opened(ledger)
        assert not ledger.freezes.renew_live_write("a", 120)
        assert ledger.freezes.grant_freeze("bf-1", ANA) == ()

    @pytest.mark.parametrize("to", [S.CANCELLED, S.EXPIRED, S.REJECTED, S.NEEDS_ACCEPTANCE])
    def test_a_freeze_ends_with_the_move_that_ends_its_reason(self, ledger: Ledger, to: RunState):
        """In the same transaction, with its own entry."""
        run_in(ledger, S.STAGED)
        opened(ledger)
        ledger.freezes.grant_freeze("bf-1", ANA)
        ledger.runs.move("bf-1", to, actor=BO)
        assert begun(ledger, "a") == ()
        assert actions(ledger)[-2:] == [f"run.{to.value}", "freeze.ended"]
        assert ledger.audit.entries()[-1].body["because"] == to.value
        assert ledger.audit.verify().ok

    def test_a_publication_gives_its_partitions_free_and_the_last_one_all(self, ledger: Ledger):
        """A partition that is published can be written by live again; the others stay frozen."""
        run_in(ledger, S.VALIDATED)
        opened(ledger)
        ledger.freezes.grant_freeze("bf-1", ANA)
        pub = intend(ledger, "bf-1", DAYS[:2])
        settle(ledger, pub, "abandoned")
        assert begun(ledger, "a") != ()
        publish(ledger, "bf-1", DAYS[:2])
        assert begun(ledger, "a") == ()
        assert begun(ledger, "b", DAYS[2:]) != ()
        publish(ledger, "bf-1", DAYS[2:])
        assert begun(ledger, "b", DAYS[2:]) == ()
        assert [name for name in actions(ledger) if name.startswith("freeze.")] == [
            "freeze.opened", "freeze.granted", "freeze.narrowed", "freeze.ended",
        ]  # fmt: skip
        assert ledger.audit.verify().ok

    def test_what_another_run_publishes_is_given_free_too(self, ledger: Ledger):
        """A run that was superseded there comes too late, so it holds nobody off; what is its own stays frozen."""
        run_in(ledger, S.VALIDATED)
        opened(ledger)
        ledger.freezes.grant_freeze("bf-1", ANA)
        run_in(ledger, S.VALIDATED, "bf-2", days=DAYS[:1])
        publish(ledger, "bf-2", DAYS[:1])
        assert begun(ledger, "a", DAYS[:1]) == ()
        assert begun(ledger, "b", DAYS[1:]) != ()
        last = ledger.audit.entries()[-1]
        assert (last.action, last.run_id, last.body["because"]) == ("freeze.narrowed", "bf-1", "published by bf-2")
        assert ledger.audit.verify().ok

    def test_a_forgotten_run_lapses_and_is_opened_again_by_its_next_command(self, ledger: Ledger):
        """A lapsed freeze waits for those who write by then, as the first did."""
        run_in(ledger, S.RUNNING)
        opened(ledger)
        ledger.freezes.grant_freeze("bf-1", ANA)
        with later(seconds=IDLE + 1):
            assert ledger.freezes.find_freezes(TABLE, DAYS) == ()
            assert not ledger.freezes.renew_freezes("bf-1", IDLE)
            assert begun(ledger, "a") == ()
            again = opened(ledger)
            assert (again.is_open, again.granted_at) == (True, None)
            assert [one.token for one in ledger.freezes.grant_freeze("bf-1", ANA)] == ["a"]

    def test_no_freeze_outlasts_what_its_plan_allows(self, ledger: Ledger, shell: Shell):
        """However often it is renewed or opened again; the database itself refuses more."""
        run_in(ledger, S.RUNNING)
        first = opened(ledger)
        for hours in range(1, 8):
            with later(seconds=hours * 3590):
                assert ledger.freezes.renew_freezes("bf-1", IDLE)
        with later(seconds=MOST - 1800):
            assert ledger.freezes.renew_freezes("bf-1", IDLE)
        with later(seconds=MOST - 10):
            assert opened(ledger).lease_until == first.most_until
        with later(seconds=MOST + 1):
            assert not opened(ledger).is_open
            assert begun(ledger, "a") == ()
            assert not ledger.freezes.renew_freezes("bf-1", IDLE)
        refused(lambda: shell.execute("UPDATE frozen_scope SET lease_until = most_until + 1"), "outlast")
        refused(lambda: shell.execute("UPDATE frozen_scope SET most_until = most_until + 1"), "fixed")
        refused(lambda: shell.execute("DELETE FROM frozen_scope"), "delete refused")

    def test_each_wave_has_a_freeze_with_its_own_limit(self, ledger: Ledger, shell: Shell):
        """All are renewed together, each up to its limit; each ends with its own partitions, or with the run."""
        run_in(ledger, S.RUNNING)
        first = opened(ledger, days=DAYS[:1])
        with later(seconds=MOST - 1800):
            second = opened(ledger, days=DAYS[1:], wave=2)
            assert second.most_until - first.most_until > (MOST - 3600) * 1000
            assert ledger.freezes.renew_freezes("bf-1", IDLE)
            assert [one.wave for one in ledger.freezes.list("bf-1") if one.is_open] == [2], "the first had lapsed"
            again = opened(ledger, days=DAYS[:1])
            assert (again.is_open, again.lease_until) == (True, first.most_until)
            assert begun(ledger, "a", DAYS[:1]) != ()
        with later(seconds=MOST + 1):
            assert [one.partitions for one in ledger.freezes.find_freezes(TABLE)] == [DAYS[1:]]
            ledger.freezes.end_freeze("bf-1", ANA, "test", DAYS[1:2])
            assert [one.partitions for one in ledger.freezes.find_freezes(TABLE)] == [DAYS[2:]]
            ledger.runs.move("bf-1", S.CANCELLED, actor=ANA)
            assert ledger.freezes.find_freezes(TABLE) == ()
        refused(lambda: shell.execute("UPDATE frozen_scope SET wave = 3"), "fixed")
        assert ledger.audit.verify().ok

    def test_a_freeze_of_one_wave_does_not_wait_for_those_who_write_another(self, ledger: Ledger):
        """Granted by wave, to each when nobody writes its own partitions."""
        run_in(ledger, S.RUNNING)
        assert begun(ledger, "a", DAYS[1:2]) == ()
        opened(ledger, days=DAYS[:1])
        opened(ledger, days=DAYS[1:], wave=2)
        assert ledger.freezes.grant_freeze("bf-1", ANA) == ()
        assert [one.token for one in ledger.freezes.grant_freeze("bf-1", ANA, wave=2)] == ["a"]
        assert [one.granted_at is not None for one in ledger.freezes.list("bf-1")] == [True, False]

    def test_opening_twice_is_renewing_and_leaves_one_entry(self, ledger: Ledger):
        """A second worker joins the freeze of the first, granted as it is."""
        run_in(ledger, S.RUNNING)
        opened(ledger)
        ledger.freezes.grant_freeze("bf-1", ANA)
        assert opened(ledger).granted_at is not None
        assert ledger.freezes.grant_freeze("bf-1", BO) == ()
        assert [name for name in actions(ledger) if name.startswith("freeze.")] == ["freeze.opened", "freeze.granted"]

    def test_a_run_nobody_approved_freezes_nothing(self, ledger: Ledger):
        """Nor one that is over."""
        plan(ledger)
        run_in(ledger, S.PUBLISHED, "bf-2")
        for run in ("bf-1", "bf-2"):
            with pytest.raises(StateRefused):
                opened(ledger, run)
        assert ledger.freezes.find_freezes(TABLE) == ()

    def test_taking_a_lease_twice_is_taking_it_once(self, ledger: Ledger):
        """An answer that was lost is asked for again."""
        assert begun(ledger, "a") == begun(ledger, "a") == ()
        assert len(ledger.freezes.live_writes(TABLE)) == 1
        ledger.freezes.end_live_write("a")
        ledger.freezes.end_live_write("a")
        assert ledger.freezes.live_writes(TABLE) == ()


class Floor:
    """Who goes at this moment, and who ever went beside the other side."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.went = {"live": 0, "run": 0}
        self.both: list[str] = []
        self._inside: dict[str, str] = {}
        self._guard = threading.Lock()

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self.ends

    @contextmanager
    def taken(self, name: str, kind: str) -> Iterator[None]:
        other = "run" if kind == "live" else "live"
        with self._guard:
            if other in self._inside.values():
                self.both.append(f"{kind} {name} beside {self._inside}")
            self._inside[name] = kind
            self.went[kind] += 1
        time.sleep(random.uniform(0, 0.004))  # noqa: S311  no secret
        yield
        with self._guard:
            del self._inside[name]


def test_live_jobs_and_runs_never_go_at_the_same_time(ledger: Ledger):
    """Four live jobs and two runs take turns as fast as they can for two seconds."""
    floor = Floor(2.0)
    for name in ("bf-0", "bf-1"):
        run_in(ledger, S.RUNNING, name)

    def live(n: int) -> None:
        for turn in itertools.count():
            if not floor.is_open:
                return
            token = f"{n}-{turn}"
            if not begun(ledger, token, DAYS[n % 3 : n % 3 + 1]):
                with floor.taken(token, "live"):
                    pass
                ledger.freezes.end_live_write(token)
            time.sleep(0.002)

    def correct(name: str) -> None:
        while floor.is_open:
            opened(ledger, name)
            while ledger.freezes.grant_freeze(name, ANA):
                time.sleep(0.001)
            with floor.taken(name, "run"):
                pass
            ledger.freezes.end_freeze(name, ANA, "turn")
            time.sleep(0.06)

    threads = [threading.Thread(target=live, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=correct, args=(name,)) for name in ("bf-0", "bf-1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert floor.both == []
    assert min(floor.went.values()) > 3
    assert ledger.audit.verify().ok


EMPTY: list[Path] = []
RUNS, WAVES, JOBS = ("bf-1", "bf-2"), (1, 2), ("a", "b", "c")
SCOPES = (DAYS[:1], DAYS[1:2], DAYS[:2], ())


class LeaseMachine(RuleBasedStateMachine):
    """Any order of both sides' calls beside what each side believes."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="errata-leases-", dir=in_memory()))
        shutil.copy(EMPTY[0], self.directory / "ledger.db")
        self.ledger = Ledger.open(f"sqlite:///{self.directory}/ledger.db")
        for name in RUNS:
            run_in(self.ledger, S.RUNNING, name)
        self.granted: dict[tuple[str, int], tuple[str, ...]] = {}
        self.writing: dict[str, tuple[str, ...]] = {}

    @rule(name=st.sampled_from(RUNS), wave=st.sampled_from(WAVES), days=st.sampled_from(SCOPES[:3]))
    def freeze(self, name: str, wave: int, days: tuple[str, ...]) -> None:
        opened(self.ledger, name, days, wave=wave)

    @rule(name=st.sampled_from(RUNS), wave=st.sampled_from(WAVES))
    def grant(self, name: str, wave: int) -> None:
        waits = self.ledger.freezes.grant_freeze(name, ANA, wave=wave)
        record = next((one for one in self.ledger.freezes.list(name) if one.wave == wave), None)
        if record and record.is_open and not waits:
            self.granted[name, wave] = record.partitions

    def forget(self, name: str) -> None:
        self.granted = {key: days for key, days in self.granted.items() if key[0] != name}

    @rule(name=st.sampled_from(RUNS))
    def thaw(self, name: str) -> None:
        self.forget(name)
        self.ledger.freezes.end_freeze(name, ANA, "over")

    @rule(name=st.sampled_from(RUNS))
    def lapse(self, name: str) -> None:
        self.forget(name)
        self.ledger.freezes.renew_freezes(name, 0)

    @rule(job=st.sampled_from(JOBS), days=st.sampled_from(SCOPES))
    def begin(self, job: str, days: tuple[str, ...]) -> None:
        if job not in self.writing and not begun(self.ledger, job, days):
            known = next(one for one in self.ledger.freezes.live_writes(TABLE) if one.token == job)
            self.writing[job] = known.partitions

    @rule(job=st.sampled_from(JOBS))
    def end(self, job: str) -> None:
        self.writing.pop(job, None)
        self.ledger.freezes.end_live_write(job)

    @rule(job=st.sampled_from(JOBS))
    def sleep(self, job: str) -> None:
        """Its lease runs out; it believes nothing until it has looked."""
        self.writing.pop(job, None)
        self.ledger.freezes.renew_live_write(job, 0)

    @rule(job=st.sampled_from(JOBS))
    def wake(self, job: str) -> None:
        if self.ledger.freezes.renew_live_write(job, 120):
            known = next(one for one in self.ledger.freezes.live_writes(TABLE) if one.token == job)
            self.writing[job] = known.partitions
        else:
            assert job not in self.writing, "a lease that never ran out was taken"

    @invariant()
    def never_both(self) -> None:
        for days in getattr(self, "granted", {}).values():
            for theirs in self.writing.values():
                assert theirs, "a job that may write anything goes beside a freeze"
                assert set(days).isdisjoint(theirs)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.audit.verify().ok
            self.ledger.close()
            shutil.rmtree(self.directory)


@pytest.mark.parametrize("size", SIZES)
def test_no_order_of_calls_lets_both_go(empty_ledger: Path, size: tuple[int, int]):
    """Random orders of calls, leases running out among them."""
    EMPTY[:] = [empty_ledger]
    follow(LeaseMachine, size)
