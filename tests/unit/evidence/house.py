"""A ledger with runs in whatever state, and a key: for evidence that is made without Spark or a table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from errata.approval.release import load_judged_candidate
from errata.canonical import digest_of
from errata.commands.upkeep.evidence import EvidenceView, export_evidence
from errata.errors import RunExpired
from errata.evidence.keys import SigningKey, generate_key_pair, load_signing_key
from errata.gate.candidate import encode_candidate
from errata.ledger import Ledger, Owner, PublicationRecord
from errata.model.audit import Actor
from errata.model.diff import (
    ColumnChange,
    Diff,
    Distribution,
    OutsideScope,
    PartitionDiff,
    Profile,
    SampleRow,
    SchemaDiff,
)
from errata.model.manifest import Manifest
from errata.model.product import Comparison, Person, Product, Project, Role
from errata.model.product.project import EvidenceSettings
from errata.model.run import RunState
from errata.model.table import DataFile
from errata.ports.measure import Measurement
from errata.workspace import Workspace
from unit.planning.worlds import PRODUCT, PROJECT, ask, plan

S = RunState
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
PEOPLE = {
    "ana": Person("ana", (Role.REQUESTER, Role.OPERATOR)),
    "bo": Person("bo", (Role.APPROVER, Role.PUBLISHER)),
    "dana": Person("dana", (Role.APPROVER, Role.PUBLISHER, Role.BREAK_GLASS)),
}
SECRET_ROW = "IBAN-DE89370400440532013000"
"""A value of a classified column, which no bundle may hold."""
OK = {"name": "rowCount", "partition": DAYS[0], "value": "10", "level": "ok", "message": "10 rows", "accepted_by": None}
WARNED = OK | {"name": "moved", "value": "-11.2", "level": "warn", "message": "moved by −11.2 %, warns above 5 %"}
BLOCKED = OK | {"name": "nullValues(account_id)", "value": "3", "level": "block", "message": "3 empty, must be 0"}


@dataclass
class Measurer:
    """Answers with a diff that has a classified column; or that its snapshots are gone."""

    gone: bool = False
    asked: int = 0

    def diff(self, manifest: Manifest, snapshot: str, base: str | None, scope: Sequence[str], *_: Any) -> Diff:
        self.asked += 1
        if self.gone:
            raise RunExpired(f"snapshot {base} has expired")
        parts = tuple(
            PartitionDiff(
                name, 10, 11, 1, 0, 7, 3, columns={"gross": ColumnChange(7, "100", "90"), "account_id": ColumnChange(2)}
            )
            for name in scope
        )
        columns = {
            "gross": ColumnChange(21, "300", "270", median_percent="-10.00"),
            "account_id": ColumnChange(6, "1", "2", median_percent="100.00"),
        }
        sample = (SampleRow(DAYS[0], "changed", {"account_id": SECRET_ROW}, {}, {}),)
        side = Profile(30, 0, minimum=SECRET_ROW)
        spread = {"account_id": Distribution("text", side, side)}
        return Diff(SchemaDiff(), parts, columns, sample, ("compared by key",), (), spread, ("account_id",))


@dataclass
class House:
    """One project: its ledger, its key, and ways to bring runs on."""

    root: Path
    ledger: Ledger
    workspace: Workspace
    key: SigningKey
    measurer: Measurer
    made: int = 0
    written_anew: bool = False  # publications have no files of the candidate
    wave: dict[str, Any] = field(default_factory=dict)  # what a publication says of the wave it is
    release_kind: str = "publish"
    plans: dict[str, Manifest] = field(default_factory=dict)

    @classmethod
    def build(cls, root: Path, empty: Path, *, single_user: bool = False) -> House:
        root.mkdir(parents=True, exist_ok=True)
        generate_key_pair(root / "errata.key")
        ledger = Ledger.open(f"sqlite:///{shutil.copy(empty, root / 'ledger.db')}")
        product = replace(
            PRODUCT, compare=(Comparison("moved", "sum(gross)", warn="5%", block="60%"),), classified=("account_id",)
        )
        project = replace(
            PROJECT, root=str(root), products={product.name: product}, people={} if single_user else PEOPLE,
            single_user=single_user, evidence=EvidenceSettings(key="errata.key"),
            secrets={"LAKE_PASSWORD": "hunter2-hunter2"},
        )  # fmt: skip
        measurer = Measurer()
        outside = SimpleNamespace(outside=lambda *_: OutsideScope(28))
        engines = SimpleNamespace(measurer=measurer, outside=outside, start_early=lambda: None)
        workspace = Workspace(project, ledger, engines, lambda: datetime.now(UTC), lambda _: None, lambda *_: None)  # type: ignore[arg-type,return-value]
        return cls(root, ledger, workspace, load_signing_key("errata.key", root), measurer)

    @property
    def url(self) -> str:
        """Where the ledger is, for someone with a connection of their own."""
        return f"sqlite:///{self.root / 'ledger.db'}"

    @property
    def project(self) -> Project:
        return self.workspace.project

    @property
    def product(self) -> Product:
        return self.project.products[PRODUCT.name]

    @property
    def public(self) -> bytes:
        return (self.root / "errata.key.pub").read_bytes()

    def actor(self, person: str) -> Actor:
        return Actor(person, f"{person}-os", "workspace-7", self.project.single_user)

    def planned(self, reason: str = "FX rates inverted", days: Sequence[str] = DAYS, **more: Any) -> str:
        asked = ask(reason=reason, partitions=list(days), requester=self.ledger.people.alias("ana"), **more)
        made = plan(asked, product=self.product, project=self.project, ledger_id=self.ledger.ledger_id)
        assert made.manifest is not None
        run, already = self.ledger.runs.record(
            made.run_id, made.content, product=self.product.name, table=made.manifest.target.table,
            partitions=made.manifest.partitions, chunks=made.manifest.chunks, parts=made.parts, actor=self.actor("ana"),
            body={"verdicts": [[v.rule, v.level, v.message, v.override] for v in made.verdicts]},
        )  # fmt: skip
        assert not already
        self.plans[run.run_id] = made.manifest
        return run.run_id

    def approved(self, *names: Any, person: str = "bo", break_glass: str = "", **more: Any) -> str:
        run_id = self.planned(*names, **more)
        digest = self.ledger.runs.get(run_id).manifest_digest
        self.ledger.approvals.decide(
            run_id, digest, person, "approved", "as discussed", self.actor(person), break_glass=break_glass
        )  # fmt: skip
        return run_id

    def declined(self) -> str:
        run_id = self.planned("not convincing")
        self.ledger.approvals.decide(
            run_id, self.ledger.runs.get(run_id).manifest_digest, "bo", "declined", "wrong days", self.actor("bo")
        )
        return run_id

    def running(self, *names: Any, **more: Any) -> str:
        run_id = self.approved(*names, **more)
        self.ledger.runs.move(run_id, S.RUNNING, actor=self.actor("ana"))
        return run_id

    def staged(self, *names: Any, **more: Any) -> str:
        """Every chunk adopted; the first one only at the second attempt."""
        run_id = self.running(*names, **more)
        owner = Owner("w1", "host-a", 4711, "boot/1")
        lost = self.ledger.chunks.claim(
            run_id, owner, lease_seconds=0, actor=self.actor("ana"), is_dead=lambda _: False
        )
        assert lost is not None
        while attempt := self.ledger.chunks.claim(
            run_id, owner, lease_seconds=60, actor=self.actor("ana"), is_dead=lambda _: False
        ):
            self.made += 1
            self.ledger.chunks.adopt(
                attempt, snapshot_id=str(5000 + self.made), rows=11 * len(attempt.partitions),
                files=len(attempt.partitions), bytes=900, seconds=1.5, actor=self.actor("ana"),
            )  # fmt: skip
        self.ledger.runs.move(run_id, S.STAGED, actor=self.actor("ana"))
        return run_id

    def files(self, run_id: str) -> tuple[DataFile, ...]:
        return tuple(
            DataFile(f"s3://lake/{run_id}/{name}.parquet", 11, 100, name) for name in self.plans[run_id].partitions
        )

    def judged(self, *names: Any, checks: Sequence[Mapping[str, Any]] = (OK,), **more: Any) -> str:
        run_id = self.staged(*names, **more)
        self.judge(run_id, checks)
        return run_id

    def judge(self, run_id: str, checks: Sequence[Mapping[str, Any]], *, keep_files: bool = True) -> None:
        """A new candidate with its numbers and a verdict."""
        manifest, actor = self.plans[run_id], self.actor("ana")
        content = encode_candidate(manifest, self.files(run_id))
        digest = self.ledger.parts.put(content) if keep_files else digest_of(run_id)
        rows = dict.fromkeys(manifest.partitions, 11)
        n = self.ledger.candidates.intend(run_id, digest, actor, {"rows": rows}).n
        self.ledger.candidates.record(run_id, n, "7719", f"55{n:02d}", actor)
        numbers = [
            Measurement(scope, name, measure, value)
            for name in manifest.partitions
            for scope, measure, value in (
                ("prior", "rowCount", "10"), ("candidate", "rowCount", "11"),
                ("prior", "compare.moved", "100.00"), ("candidate", "compare.moved", "88.80"),
            )
        ]  # fmt: skip
        self.ledger.candidates.record_measurements(run_id, n, numbers, actor)
        is_open = any(one["level"] == "block" or (one["level"] == "warn" and not one["accepted_by"]) for one in checks)
        self.ledger.candidates.record_verdict(run_id, n, not is_open, checks, digest_of([*checks]), actor)

    def accepted(self) -> str:
        """A warning that bo answers for, after bo changed a threshold."""
        run_id = self.staged()
        change = {"name": "moved", "before": {"warn": "1%"}, "after": {"warn": "5%"}}
        fact = {"person": "bo", "why": "one percent was a slip", "changes": [change], "rules": {}}
        self.ledger.facts.record(run_id, "thresholds.1", fact, self.actor("bo"))
        self.judge(run_id, [OK, WARNED])
        self.ledger.approvals.accept_warning(
            run_id, "moved", "rates really fell", "bo", self.actor("bo"), digest_of("what was found")
        )
        n = self.ledger.candidates.list(run_id)[-1].n
        checks = [OK, WARNED | {"accepted_by": "bo"}]
        self.ledger.candidates.record_verdict(
            run_id, n, passed=True, checks=checks, thresholds_digest=digest_of("t"), actor=self.actor("bo")
        )
        return run_id

    def intended(
        self, run_id: str, days: Sequence[str] = DAYS, kind: str = "publish", person: str = "bo", break_glass: str = ""
    ) -> PublicationRecord:
        old = {name: [["data", f"s3://lake/{name}.parquet", 10]] for name in days}
        new = {
            file.partition or "": [["data", file.path, file.rows]]
            for file in self.files(run_id)
            if file.partition in days
        }
        if self.written_anew:
            new = {}
        release: dict[str, Any] = {}
        if kind == "publish":
            release = self.release(run_id, person, break_glass)
        return self.ledger.publications.intend(
            run_id, kind, days, table=self.product.target.table, person=person, reason="as planned",  # type: ignore[arg-type]
            detail={
                "kind": kind, "partitions": list(days), "base_snapshot_id": "7719", "add_from": [], "compacted": [],
                "remove": old if kind == "publish" else new, "add": new if kind == "publish" else old,
                "with_deletes": [], "rewrite": {}, "columns": [],
            },
            lease_seconds=60, actor=self.actor(person), consumers=(), release=release, base_snapshot_id="7719",
        )  # fmt: skip

    def release(self, run_id: str, person: str, break_glass: str) -> dict[str, Any]:
        found = load_judged_candidate(self.workspace, self.ledger.runs.get(run_id))
        assert found is not None
        record, _ = self.ledger.releases.record(
            run_id, found.subject.content, candidate_n=found.candidate.n, person=person, kind=self.release_kind,  # type: ignore[arg-type]
            actor=self.actor(person), break_glass=break_glass,
        )  # fmt: skip
        candidate = found.candidate
        return {
            "candidate": candidate.n, "snapshot_id": candidate.snapshot_id, "digest": candidate.digest, "checks": 1,
            "accepted": [], "release": record.release_id, "release_digest": record.digest,
            "verdict": found.verdict.audit_seq, **self.wave,
        }  # fmt: skip

    def publish(self, run_id: str, days: Sequence[str] = (), **more: Any) -> None:
        self.settle(self.intended(run_id, days or self.plans[run_id].partitions, **more))

    def roll_back(self, run_id: str, days: Sequence[str] = DAYS) -> None:
        self.settle(self.intended(run_id, days, "rollback"))

    def settle(self, pub: PublicationRecord, outcome: str = "committed") -> None:
        landed = {"snapshot_id": f"88{pub.n:02d}", "data_files_written": 0} if outcome == "committed" else {}
        self.ledger.publications.settle(pub.pub_id, outcome, actor=self.actor("bo"), **landed)  # type: ignore[arg-type]

    def published(self, *names: Any, **more: Any) -> str:
        run_id = self.judged(*names, **more)
        self.publish(run_id)
        return run_id

    def export(self, run_id: str, *, with_diff: bool = True) -> bytes:
        return self.exported(run_id, with_diff=with_diff)[1]

    def exported(self, run_id: str, *, with_diff: bool = True) -> tuple[EvidenceView, bytes]:
        return export_evidence(self.workspace, self.actor("bo"), run_id, with_diff=with_diff)

    def cases(self) -> dict[str, str]:
        """A run in every state there is, all in one ledger, so that each meets entries of the others."""
        made = {
            "planned": self.planned("planned only"),
            "approved": self.approved("approved only"),
            "declined": self.declined(),
            "running": self.running("running"),
            "staged": self.staged("staged"),
            "validated": self.judged("validated"),
            "rejected": self.judged("rejected", checks=[OK, BLOCKED, WARNED]),
            "needs acceptance": self.judged("needs acceptance", checks=[OK, WARNED]),
            "accepted": self.accepted(),
        }
        cancelled = self.approved("cancelled")
        self.ledger.runs.move(cancelled, S.CANCELLED, actor=self.actor("ana"))
        failed = self.running("failed")
        self.ledger.runs.move(failed, S.FAILED, actor=self.actor("ana"))
        part = self.judged("in part", days=("2026-01-24", "2026-01-25"))
        self.publish(part, ("2026-01-24",))
        landing = self.judged("landing", days=("2026-01-20",))
        self.intended(landing, ("2026-01-20",))
        abandoned = self.judged("abandoned", days=("2026-01-21",))
        self.settle(self.intended(abandoned, ("2026-01-21",)), "abandoned")
        superseded = self.published("first try")
        published = self.published("second try")
        back = self.published("third try")
        self.roll_back(back, DAYS[:1])
        elsewhere = self.published("wrong", days=("2026-01-10", "2026-01-11"))
        return made | {
            "cancelled": cancelled, "failed": failed, "part_published": part, "publishing": landing,
            "abandoned": abandoned, "superseded": superseded, "published": published, "rolled_back_in_part": back,
            "published_elsewhere": elsewhere,
        }  # fmt: skip
