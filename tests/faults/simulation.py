"""A deterministic simulation: a real ledger and a real publisher, simulated processes, a catalog in memory, one seed.

Nothing runs by itself. A scheduler with one source of chance decides who makes the next request, and what becomes of
it: done, refused, done with the answer lost, done and sent again so that the answer is a conflict with itself, held
back and delivered later, or the process dies before or after it. Processes freeze past their leases and wake up; the
clock jumps; others write to the table, delete from it, set it back and drop refs; the ledger is put back from an older
copy of itself. Time is the database's time, and the database's time is the simulation's: SQLite's own functions for it
are replaced on every connection, so the ledger's statements stay as they are.

First faults, then none: every run must come to an end or to a person in bounded time.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errata.canonical import canonical_bytes
from errata.errors import ErrataError, LedgerUnavailable
from errata.ledger import Ledger, Owner
from errata.model.audit import Actor
from errata.model.manifest import Chunk
from errata.model.refs import base_tag
from errata.model.run import RunState
from faults.simulated_clock import START_MS, Clock
from faults.simulated_others import drop_what_it_relies_on, others_at_work
from faults.simulated_processes import (
    Process,
    Request,
    Sleep,
    operator,
    payer,
    planned_files,
    publisher,
    rollback,
    validator,
    visitor,
    worker,
)
from faults.simulated_table import DAYS, TABLE, Catalog, CommitFailed

RUNS = {"bf-a": (DAYS[:2], DAYS[2:3]), "bf-b": (DAYS[2:3], DAYS[3:4]), "bf-c": (DAYS[4:],)}
KINDS = {
    "worker": worker, "validator": validator, "publisher": publisher, "rollback": rollback, "operator": operator,
    "visitor": visitor, "payer": payer,
}  # fmt: skip
S = RunState
_ENDS = frozenset({S.PUBLISHED, S.ROLLED_BACK, S.SUPERSEDED, S.CANCELLED})
_STEPS = 220
OFTEN = {
    "live delete": [0.0, 0.01],
    "main set back": [0.0, 0.01],
    "ref dropped": [0.0, 0.05, 0.4],
    "no clear answer": [0.0, 0.05, 0.3],
    "sent twice": [0.0, 0.1],
    "held back": [0.0, 0.1],
    "parents cleared": [0.0, 0.5],
    "column filled": [0.0, 0.05],
    "clock ahead": [0.0, 0.01],
}
"""How likely faults of the table are in a step or a request of their kind, each of which a seed takes one of."""
LATER = frozenset({"parents cleared", "column filled", "clock ahead"})
"""Faults that have a chance of their own, so that histories without them stay what they were."""
_BRANCHES = frozenset({"table.guard", "table.stage", "table.assemble", "table.undo", "table.rewrite", "table.fence"})
"""Commits that change refs beside main."""
_PUBLICATIONS = "SELECT pub_id, partitions FROM publication"
LIVENESS_MS = 4 * 3600 * 1000
"""Once faults stop: leases of one and two minutes, waits of a chunk of up to ten, and the way through the states."""
_ANA = Actor("ana", "ana-os", "workspace")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was planned on."""

    base: str
    expected: Any
    rows: dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a history begins: a ledger file, of which it gets a copy, and the table that belongs to it."""

    database: Path
    catalog: Catalog
    plans: dict[str, Plan]
    now_ms: int = START_MS
    is_waved: bool = False


def approved_ground(database: Path, *, is_waved: bool = False) -> Ground:
    """Runs that are approved and not planned on anything yet: the simulation does that at some time.

    With waves, every chunk is one.
    """
    with Clock().under_sqlite(), Ledger.open(f"sqlite:///{database}") as ledger:
        for name, chunks in RUNS.items():
            days = [day for chunk in chunks for day in chunk]
            made = [Chunk(f"c{n:04d}", chunk, 10, 100, n + 1 if is_waved else 1) for n, chunk in enumerate(chunks)]
            run, _ = ledger.runs.record(
                name, canonical_bytes({"format": "errata.manifest/1", "name": name}), product="fin.daily_revenue",
                table=TABLE, partitions=days, chunks=made, parts={}, actor=_ANA, body={},
            )  # fmt: skip
            ledger.approvals.decide(name, run.manifest_digest, "bo", "approved", "", Actor("bo", "bo-os", "workspace"))
    return Ground(database, Catalog(), {}, is_waved=is_waved)


def validated_ground(approved: Ground, database: Path) -> Ground:
    """The same runs, computed and judged in peace: everything that follows is about publishing."""
    shutil.copy(approved.database, database)
    clock = Clock()
    with (
        clock.under_sqlite(),
        Ledger.open(f"sqlite:///{database}", create=False) as ledger,
        closing(sqlite3.connect(database)) as rows,
    ):
        world = World(ledger, clock, 0, rows, is_healed=True, last="validator", is_waved=approved.is_waved)
        while set(world.states().values()) != {S.VALIDATED} or not all(p.is_dead for p in world.processes):
            world.supervise()
            world.step()
    return Ground(database, world.catalog, world.plans, clock.now_ms, approved.is_waved)


@dataclass
class World:
    """Everything of one seed."""

    ledger: Ledger
    clock: Clock
    seed: int
    rows: sqlite3.Connection
    catalog: Catalog = field(default_factory=Catalog)
    plans: dict[str, Plan] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    holders: dict[str, Process] = field(default_factory=dict)
    held: list[Request] = field(default_factory=list)
    conflicts: set[str] = field(default_factory=set)
    trace: list[str] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    made: int = 0
    retries: int = 0
    is_healed: bool = False
    copy: sqlite3.Connection | None = None
    intended: dict[str, int] = field(default_factory=dict)  # publication → how many commits main had by then
    lost: dict[str, list[str]] = field(default_factory=dict)  # publications of replaced ledgers → their partitions
    last: str = "rollback"  # the kind of process after which nothing follows
    often: dict[str, float] = field(default_factory=dict)  # faults that happen more often than by chance of the seed
    is_waved: bool = False
    is_held: bool = False  # readers ask a ready table
    _states: dict[str, RunState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311  the seed is the test
        # some worlds are calm and some are stormy, so that rare faults also meet each other undisturbed
        self.storm = self.chance.choice([0.02, 0.06, 0.15])
        self.writes = self.chance.choice([0.0, 0.004, 0.02])
        self.disaster = random.Random(f"ledger {self.seed}")  # noqa: S311  of its own, so that other histories stay
        self.others = random.Random(f"others {self.seed}")  # noqa: S311
        self.later = random.Random(f"later {self.seed}")  # noqa: S311
        chances = {what: self.later if what in LATER else self.others for what in OFTEN}
        self.rates = {what: chances[what].choice(rates) for what, rates in OFTEN.items()} | self.often
        self.restores = self.seed % 4 == 1

    def sees_dead(self, me: Process, owner: Owner) -> bool:
        """Whether a process can know that another one is gone."""
        gone = [process for process in self.processes if process.owner == owner and process.is_dead]
        return bool(gone) and gone[0].host == me.host

    def say(self, what: str) -> None:
        """One line of the trace."""
        self.trace.append(f"{self.clock.now_ms - START_MS:>9} {what}")

    def count(self, what: str) -> None:
        """One more for the figures."""
        self.figures[what] = self.figures.get(what, 0) + 1

    # ---------------------------------------------------------------------------------------------------- processes

    def start(self, kind: str, run_id: str) -> None:
        """A new process."""
        self.made += 1
        process = Process(f"{kind}{self.made}", self.chance.choice(["here", "there"]), kind, run_id)
        self.processes.append(process)
        process.steps = KINDS[kind](self, process)
        self.say(f"{process.name} starts for {run_id}")
        self._resume(process, None, None)

    def _resume(self, process: Process, answer: Any, error: Exception | None) -> None:
        assert process.steps is not None
        try:
            process.waiting = process.steps.throw(error) if error else process.steps.send(answer)
        except StopIteration:
            self._end(process, "ends")
        except (ErrataError, RuntimeError, ConnectionError) as told:
            self._end(process, f"gives up: {type(told).__name__} {str(told).splitlines()[0][:100]}")
        else:
            if isinstance(process.waiting, Sleep):
                process.not_before = self.clock.now_ms + int(process.waiting.seconds * 1000)

    def _end(self, process: Process, how: str) -> None:
        self.say(f"{process.name} {how}")
        process.is_dead, process.steps, process.waiting = True, None, None

    def step(self) -> None:
        """One decision: somebody makes a request, and meets its fate."""
        self.clock.now_ms += self.chance.randint(0, 3000)
        alive = [process for process in self.processes if not process.is_dead]
        ready = [process for process in alive if process.not_before <= self.clock.now_ms]
        if not ready:
            if alive:
                self.clock.now_ms = min(process.not_before for process in alive)
            return
        process = self.chance.choice(ready)
        if isinstance(process.waiting, Sleep):
            self._resume(process, None, None)
        elif process.waiting is not None:
            self._request(process, process.waiting)

    def _request(self, process: Process, request: Request) -> None:
        drop_what_it_relies_on(self, request)
        fault = self._fault(request)
        if fault:
            self.count(fault)
            self.say(f"{process.name} {request.name}: {fault}")
        match fault:
            case "killed before":
                return self._end(process, "is dead")
            case "frozen":
                process.not_before = self.clock.now_ms + self.chance.randint(20_000, 400_000)
                return None
            case "failed":
                return self._resume(process, None, _trouble(request))
            case "held back":
                self.held.append(request)
                return self._resume(process, None, _trouble(request))
        is_done = fault != "no clear answer" or self.others.random() < 0.5
        answer, error = self._done(process, request) if is_done else (None, None)
        if fault == "killed after":
            return self._end(process, "is dead")
        if fault in ("answer lost", "no clear answer"):
            return self._resume(process, None, _trouble(request))
        if fault == "sent twice":
            landed = error is None
            answer, error = self._done(process, request)
            self.count("landed and told a conflict" if landed and error else "sent twice and refused twice")
        return self._resume(process, answer, error)

    def _fault(self, request: Request) -> str:
        if self.is_healed:
            return ""
        if request.name in _BRANCHES and self.others.random() < self.rates["no clear answer"]:
            return "no clear answer"
        for fault in ("sent twice", "held back"):
            if request.name in ("table.commit", "ready.commit") and self.others.random() < self.rates[fault]:
                return fault
        # what is lost at the commit is what matters most
        likely = 0.4 if request.name == "table.commit" else self.storm
        if self.chance.random() >= likely:
            return ""
        faults = ["killed before", "killed after", "frozen", "frozen", "failed", "answer lost"]
        return self.chance.choice([*faults, *["held back"] * 4] if request.name == "table.commit" else faults)

    def _done(self, process: Process, request: Request) -> tuple[Any, Exception | None]:
        if request.name.startswith("ledger."):
            self._states = {}
        try:
            answer = request.do()
        except (ErrataError, CommitFailed) as error:
            self.say(f"{process.name} {request.name} → {type(error).__name__} {str(error).splitlines()[0][:90]}")
            return None, error
        self.say(f"{process.name} {request.name} → {str(answer)[:60]}")
        if request.name == "ledger.publications.intend":
            self.holders[answer.pub_id] = process
            self.intended[answer.pub_id] = len(self.catalog.landed)
        return answer, None

    # -------------------------------------------------------------------------------------------------- surroundings

    def surroundings(self) -> None:
        """What happens to the table and to the clock without any process of ours."""
        chance = self.chance
        if chance.random() < 0.02:
            self.clock.now_ms += chance.choice([10_000, 70_000, 900_000])
            self.count("clock jumps")
        if self.held and chance.random() < 0.1:
            self.deliver(self.held.pop(chance.randrange(len(self.held))))
        others_at_work(self)
        if self.restores and self.disaster.random() < (0.1 if self.copy is None else 0.01):
            self.put_back() if self.copy else self.copy_ledger()

    def copy_ledger(self) -> None:
        """A backup of the ledger."""
        self.copy = sqlite3.connect(":memory:")
        self.rows.backup(self.copy)
        self.note("ledger copied", "", "")

    def put_back(self) -> None:
        """The backup instead of the ledger. Processes are stopped for that; what they sent may arrive all the same."""
        assert self.copy is not None
        self.lost |= {pub: json.loads(names) for pub, names in self.rows.execute(_PUBLICATIONS)}
        self.copy.backup(self.rows)
        self._states, self.conflicts = {}, set()
        for process in self.processes:
            if not process.is_dead:
                self._end(process, "is stopped")
        self.note("ledger put back", "", "")

    def note(self, what: str, snapshot: str, day: str) -> None:
        self.count(what)
        self.say(f"{what} {day} → {snapshot}")

    def deliver(self, late: Request) -> None:
        """A commit that was held back reaches the catalog after all."""
        try:
            self.note("late commit lands", late.do(), "")
        except CommitFailed as error:
            self.note("late commit refused", str(error), "")

    def supervise(self) -> None:
        """Start what a run needs next, as people and schedulers do; in a storm sometimes twice."""
        if self.is_held and not self.is_healed and self.chance.random() < 0.1:
            self.start("payer", "")
        for run_id in RUNS:
            if run_id not in self.plans:
                if self.is_healed or self.chance.random() < 0.1:
                    self._plan(run_id)
                continue
            kind = self._next_kind(run_id)
            busy = sum(p.kind == kind and p.run_id == run_id and not p.is_dead for p in self.processes)
            most = 1 if self.is_healed else 2
            if kind and busy < most and self.chance.random() < (0.5 if self.is_healed else 0.2):
                self.retries += kind == "operator"
                self.start(kind, run_id)

    def _plan(self, run_id: str) -> None:
        days = tuple(day for chunk in RUNS[run_id] for day in chunk)
        head = self.catalog.head()
        if self.chance.random() < 0.8:
            self.catalog.tag(base_tag(run_id), head.id)  # else it expires, as when somebody drops the tag
        self.plans[run_id] = Plan(head.id, planned_files(self, days), {day: head.rows(day) for day in days})
        self.say(f"{run_id} is planned on {head.id}")

    def is_planned(self) -> bool:
        """Whether every run is."""
        return self.plans.keys() == RUNS.keys()

    def states(self) -> dict[str, RunState]:
        """The states of the runs, read from the database when somebody may have changed them."""
        if not self._states:
            self._states = {name: S(state) for name, state in self.rows.execute("SELECT run_id, state FROM run")}
        return self._states

    def _next_kind(self, run_id: str) -> str | None:
        match self.states()[run_id]:
            case S.RUNNING if self.is_waved:
                # waves are judged and published while others are computed
                more = ("validator",) if self.last == "validator" else ("validator", "publisher")
                return self.chance.choice(("worker", "worker", *more))
            case S.APPROVED | S.RUNNING:
                return "worker"
            case S.FAILED:
                return "operator" if self.retries < 12 else None
            case S.STAGED:
                return "validator"
            case S.PUBLISHING if self.last != "validator":
                return "publisher"
            case S.VALIDATED | S.PART_PUBLISHED if self.is_waved and self.chance.random() < 0.5:
                return "validator"  # the next wave may not be judged yet
            case S.VALIDATED | S.PART_PUBLISHED if self.last != "validator":
                return None if run_id in self.conflicts and self.is_healed else "publisher"
            case S.PUBLISHED if not self.is_healed and self.chance.random() < 0.1:
                return "rollback"
        return None

    def is_over(self) -> bool:
        """Every run is at its end or with a person, and nobody is at work."""
        return (
            all(process.is_dead for process in self.processes)
            and all(self.ends_well(state, run_id) for run_id, state in self.states().items())
            and not self.ledger.publications.list_open()
        )

    def ends_well(self, state: RunState, run_id: str) -> bool:
        """At an end, or waiting for a person who was told why."""
        waits = state in (S.VALIDATED, S.PART_PUBLISHED) and run_id in self.conflicts
        return state in _ENDS or waits or (state is S.FAILED and self.retries >= 12)


def _trouble(request: Request) -> Exception:
    if request.name.startswith("ledger."):
        return LedgerUnavailable("the ledger went away")
    return RuntimeError(f"{request.name}: 504 no answer")


def simulate(
    ledger: Ledger, clock: Clock, ground: Ground, seed: int, rows: sqlite3.Connection, trace: list[str],
    often: dict[str, float], *, is_held: bool = False,
) -> World:  # fmt: skip
    """Faults for a number of steps, then none until every run is at its end; raises when that takes too long."""
    clock.now_ms = ground.now_ms
    random.seed(seed)  # the product rolls dice for how long a chunk waits
    world = World(
        ledger,
        clock,
        seed,
        rows,
        deepcopy(ground.catalog),
        dict(ground.plans),
        trace=trace,
        often=often,
        is_waved=ground.is_waved,
        is_held=is_held,
    )
    for _ in range(_STEPS):
        world.surroundings()
        world.supervise()
        world.step()
    world.is_healed = True
    world.say("------ no more faults")
    _come_to_rest(world)
    if world.copy is not None:
        for run_id, state in world.states().items():
            if state is S.PUBLISHED and world.disaster.random() < 0.5:
                world.start("rollback", run_id)
        _come_to_rest(world)
        world.put_back()
        _come_to_rest(world)
        world.copy.close()
    for late in world.held:
        world.deliver(late)
    for one in (one for run_id in RUNS for one in ledger.publications.list(run_id)):
        world.count(f"{one.kind} {one.state.value}")
    return world


def _come_to_rest(world: World) -> None:
    until = world.clock.now_ms + LIVENESS_MS
    while not world.is_over():
        assert world.clock.now_ms < until, f"I12 not at an end in bounded time: {world.states()}"
        if all(process.is_dead for process in world.processes):
            world.clock.now_ms += 30_000
            world.start("visitor", "")
        world.supervise()
        world.step()
