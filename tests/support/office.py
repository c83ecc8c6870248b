"""A project with people, a ledger and one run, without Spark or a table: for rules about who decides what."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from errata.canonical import canonical_bytes, sha256
from errata.client import Client
from errata.errors import EngineError
from errata.gate.candidate import digest_candidate
from errata.ledger import Ledger, Owner, RunRecord
from errata.model.approval import ApprovalRules
from errata.model.audit import Actor
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import Grain
from errata.model.product import Person, Product, Project, Publish, Role, Target, Transform
from errata.model.product.throttle import Signal
from errata.model.run import RunState
from errata.model.table import DataFile
from errata.model.waves import narrow_to_partitions, split_into_waves
from errata.workspace import Workspace
from support.clock import later
from support.empty_ledger import empty_ledger
from unit.gate.manifests import manifest

R = Role
PEOPLE = {
    "ana": Person("ana", (R.REQUESTER, R.OPERATOR)),
    "bo": Person("bo", (R.APPROVER, R.PUBLISHER)),
    "cy": Person("cy", (R.REQUESTER, R.OPERATOR, R.APPROVER, R.PUBLISHER)),
    "dana": Person("dana", (R.APPROVER, R.PUBLISHER, R.BREAK_GLASS), teams=("finance-data",)),
    "airflow": Person("airflow", (R.OPERATOR, R.PUBLISHER), service=True),
}
NO_TEAMS = {name: replace(person, teams=()) for name, person in PEOPLE.items()}
FILES = (DataFile("/lake/f1.parquet", 3, 100, "2026-01-01"), DataFile("/lake/f2.parquet", 3, 100, "2026-01-02"))
DAYS = ("2026-01-01", "2026-01-02")
OK = {"name": "rows", "partition": None, "value": "1", "level": "ok", "message": "fine"}
WARNED = {"name": "moved", "partition": DAYS[0], "value": "9", "level": "warn", "message": "9 % more"}


@dataclass
class Bell:
    """An alarm that remembers, or does not work."""

    is_there: bool = True
    broken: str = ""
    heard: list[Mapping[str, Any]] = field(default_factory=list)

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        if self.broken:
            raise EngineError(self.broken)
        self.heard.append(told)


@dataclass
class Office:
    """One run and the people who decide over it."""

    ledger: Ledger
    workspace: Workspace
    client: Client
    run: RunRecord
    manifest: Manifest
    bell: Bell
    said: list[str]
    files: list[DataFile]

    def staff(self, **people: Person | None) -> None:
        """The project file of today: these people changed, or gone (None)."""
        now = {**self.workspace.project.people, **people}
        kept = {name: person for name, person in now.items() if person is not None}
        self.use(replace(self.workspace.project, people=kept))

    def use(self, project: Project) -> None:
        self.workspace = replace(self.workspace, project=project)
        self.client = Client(self.workspace, lambda _: (), tuple)

    @property
    def state(self) -> str:
        return self.ledger.runs.get(self.run.run_id).state.value

    def approve(self, person: str, **options: Any) -> Any:
        return self.client.approve(self.run.run_id, digest=self.run.manifest_digest, as_=person, **options)

    def judged(self, *checks: Mapping[str, Any], passed: bool = True) -> None:
        """Bring the run to its verdict: a candidate of the files that are there."""
        ledger, run_id = self.ledger, self.run.run_id
        if self.state in ("planned", "approved"):
            for state in (RunState.APPROVED, RunState.RUNNING, RunState.STAGED):
                if state is RunState.STAGED:
                    self.compute()
                if self.state != state.value:
                    ledger.runs.move(run_id, state, actor=ANA)
        for wave in ledger.waves.list(run_id):
            self.candidate(wave.partitions)
            self.verdict(*(checks or (OK,)), passed=passed)

    def compute(self) -> None:
        """Stage every chunk."""
        while attempt := self.ledger.chunks.claim(
            self.run.run_id, WORKER, lease_seconds=60, actor=ANA, is_dead=lambda _: False
        ):
            self.ledger.chunks.adopt(
                attempt, snapshot_id=f"8{attempt.fence}", rows=1, files=1, bytes=1, seconds=0.1, actor=ANA
            )

    def candidate(self, partitions: tuple[str, ...] = ()) -> None:
        """Another candidate, of all partitions or of these."""
        names = partitions or self.run.partitions
        files = tuple(file for file in self.files if file.partition in names or not partitions)
        narrowed = (
            self.manifest if set(names) == set(self.run.partitions) else narrow_to_partitions(self.manifest, names)
        )
        made = self.ledger.candidates.intend(self.run.run_id, digest_candidate(narrowed, files), ANA)
        rows = {"rows": dict.fromkeys(names, 3)}
        self.ledger.candidates.record(self.run.run_id, made.n, None, str(900 + made.n), ANA, rows)

    def verdict(self, *checks: Mapping[str, Any], passed: bool = True) -> None:
        """Another verdict on the newest candidate."""
        newest = self.ledger.candidates.latest(self.run.run_id)
        assert newest is not None
        self.ledger.candidates.record_verdict(self.run.run_id, newest.n, passed, checks, "t" * 64, ANA)

    def actions(self) -> list[str]:
        return [entry.action for entry in self.ledger.audit.entries(self.run.run_id)]

    @contextmanager
    def later(self, **ahead: float) -> Iterator[None]:
        """The database's clock, so much later."""
        with later(**ahead):
            yield


ANA = Actor("ana", "u", "h")
WORKER = Owner("w1", "elsewhere", 1, "boot/ns/1")


def office(
    tmp_path: Path,
    people: Mapping[str, Person] = NO_TEAMS,
    *,
    requester: str = "ana",
    rules: ApprovalRules | None = None,
    manual: bool = True,
    single_user: bool = False,
    partitions: tuple[str, ...] = DAYS,
    publish: Publish | None = None,
    health: tuple[Signal, ...] = (),
    chunks: tuple[Chunk, ...] = (),
) -> Office:
    """A planned run."""
    target = Target("lake.fin.daily_revenue", "business_date", Grain.DAY)
    product = Product(
        "fin.daily_revenue", "finance-data", target, Transform("t:build", "1"), (), manual=manual, health=health
    )
    named = {} if single_user else dict(people)
    project = Project("finsight", str(tmp_path), "", {}, {product.name: product}, people=named, single_user=single_user)
    sealed = manifest(
        requested_by=requester, approval=rules or ApprovalRules(), manual=manual, single_user=single_user,
        partitions=partitions, publish=publish or Publish(),
    )  # fmt: skip
    if sealed.publish.waves:
        waves = split_into_waves(sealed.publish.waves, sealed.order, target.grain, partitions)
        chunks = tuple(Chunk(f"c{wave.n}", wave.partitions, 10, 1, wave.n) for wave in waves)
        sealed = replace(sealed, chunks=chunks)
    expected = canonical_bytes({name: [] for name in partitions})
    sealed = replace(sealed, target=replace(sealed.target, expected_part=sha256(expected)))
    content = canonical_bytes(sealed)
    if not (tmp_path / "ledger.db").exists():
        (tmp_path / "ledger.db").write_bytes(empty_ledger())
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db")
    run, _ = ledger.runs.record(
        f"bf-20260215-daily-revenue-{sha256(content)[:8]}", content, product=product.name, table=target.table,
        partitions=partitions, chunks=chunks, parts={sha256(expected): expected},
        actor=Actor(requester, "u", "h", single_user),
    )  # fmt: skip
    bell, said, files = Bell(), [], list(FILES)
    engines = SimpleNamespace(
        start_early=lambda **_: None,
        alarm=bell, publishing=SimpleNamespace(files_of=lambda *_: tuple(files)), log=tmp_path / "log",
        # main is where the plan found it: nobody wrote since
        pins=SimpleNamespace(refs=lambda _: {"main": sealed.target.base_snapshot_id}),
        history=SimpleNamespace(left=lambda *_: {}), dbt=lambda: None,
        available_jars=dict(sealed.code.jars),
    )  # fmt: skip
    workspace = Workspace(
        project, ledger, engines, lambda: datetime.now(UTC), said.append, lambda *_: None,  # type: ignore[arg-type,return-value]
        sleep=lambda seconds: time.sleep(min(seconds, 0.01)),
    )  # fmt: skip
    client = Client(workspace, lambda _: (), tuple)
    return Office(ledger, workspace, client, run, sealed, bell, said, files)
