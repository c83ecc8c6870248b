"""Short ways to bring a ledger into a state; shared by the tests of this directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from errata.canonical import canonical_bytes, sha256, to_plain
from errata.ledger import AttemptRecord, HoldRecord, Ledger, Owner, PublicationRecord, RunRecord, VerdictRecord
from errata.ledger.store.standing import use_standing
from errata.model.approval import QuorumStatus
from errata.model.audit import Actor
from errata.model.campaign.derivation import derive_manifest
from errata.model.consumer.declaration import Hold
from errata.model.consumer.hold import HoldRequest
from errata.model.consumer.outbox import Owed
from errata.model.manifest import Chunk
from errata.model.recording.recorded_file import Inspection, Intake, StoredContent, name_place
from errata.model.run import ANSWERED, RunState
from unit.gate.manifests import manifest, target_pin

ANA = Actor("ana", "ana-os", "workspace")
BO = Actor("bo", "bo-os", "workspace")
TABLE = "lake.fin.daily_revenue"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
ALIVE = Owner("w1", "elsewhere", 1, "boot/ns/1")

S = RunState
PATHS: dict[RunState, tuple[RunState, ...]] = {
    S.PLANNED: (),
    S.APPROVED: (S.APPROVED,),
    S.DECLINED: (S.DECLINED,),
    S.RUNNING: (S.APPROVED, S.RUNNING),
    S.PAUSED: (S.APPROVED, S.RUNNING, S.PAUSED),
    S.FAILED: (S.APPROVED, S.RUNNING, S.FAILED),
    S.STAGED: (S.APPROVED, S.RUNNING, S.STAGED),
    S.REJECTED: (S.APPROVED, S.RUNNING, S.STAGED, S.REJECTED),
    S.NEEDS_ACCEPTANCE: (S.APPROVED, S.RUNNING, S.STAGED, S.NEEDS_ACCEPTANCE),
    S.VALIDATED: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED),
    S.PUBLISHING: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED, S.PUBLISHING),
    S.PART_PUBLISHED: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED, S.PUBLISHING, S.PART_PUBLISHED),
    S.PUBLISHED: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED, S.PUBLISHING, S.PUBLISHED),
    S.ROLLED_BACK: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED, S.PUBLISHING, S.PUBLISHED, S.ROLLED_BACK),
    S.SUPERSEDED: (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED, S.PUBLISHING, S.PUBLISHED, S.SUPERSEDED),
    S.CANCELLED: (S.CANCELLED,),
    S.EXPIRED: (S.EXPIRED,),
    S.ATTESTED: (S.RUNNING, S.STAGED, S.ATTESTED),
    S.DIFFERS: (S.RUNNING, S.STAGED, S.DIFFERS),
}
CHECKING_PATHS = {**PATHS, S.RUNNING: (S.RUNNING,), S.STAGED: (S.RUNNING, S.STAGED)}
"""The ways of a run that changes nothing; nobody approves it."""


def manifest_bytes(name: str, kind: str | None = None) -> bytes:
    told = {"format": "errata.manifest/1", "reason": f"reason of {name}", "name": name}
    return canonical_bytes({**told, "kind": kind} if kind else told)


def plan(
    ledger: Ledger,
    name: str = "bf-1",
    days: Sequence[str] = DAYS,
    chunks: int | None = None,
    kind: str | None = None,
) -> RunRecord:
    """A planned run with one chunk per day, or ``chunks`` of them."""
    count = len(days) if chunks is None else chunks
    made = [Chunk(f"c{n:04d}", (days[n % len(days)],), 10, 100) for n in range(count)]
    run, already = ledger.runs.record(
        name,
        manifest_bytes(name, kind),
        product="fin.daily_revenue",
        table=TABLE,
        partitions=days,
        chunks=made,
        parts={},
        actor=ANA,
        body={},
    )
    assert not already
    return run


def bring(ledger: Ledger, run_id: str, to: RunState, kind: str | None = None) -> RunRecord:
    """Move a planned run along a legal path."""
    for state in (CHECKING_PATHS if kind else PATHS)[to]:
        ledger.runs.move(run_id, state, actor=ANA)
    return ledger.runs.get(run_id)


def run_in(
    ledger: Ledger, state: RunState, name: str = "bf-1", days: Sequence[str] = DAYS, kind: str | None = None
) -> RunRecord:
    kind = kind or ("attest" if state in ANSWERED else None)
    plan(ledger, name, days, kind=kind)
    return bring(ledger, name, state, kind)


def claim(ledger: Ledger, run_id: str = "bf-1", owner: Owner = ALIVE, lease: float = 60.0) -> AttemptRecord | None:
    return ledger.chunks.claim(run_id, owner, lease_seconds=lease, actor=ANA, is_dead=lambda _: False)


def must_claim(ledger: Ledger, run_id: str = "bf-1", owner: Owner = ALIVE, lease: float = 60.0) -> AttemptRecord:
    attempt = claim(ledger, run_id, owner, lease)
    assert attempt is not None
    return attempt


def adopt(ledger: Ledger, attempt: AttemptRecord, snapshot: str = "900719925474099312", rows: int = 7) -> None:
    ledger.chunks.adopt(attempt, snapshot_id=snapshot, rows=rows, files=1, bytes=50, seconds=0.5, actor=ANA)


def judge(
    ledger: Ledger, checks: Sequence[Mapping[str, str]] = (), thresholds: str = "t" * 64, *, passed: bool
) -> VerdictRecord:
    return ledger.candidates.record_verdict("bf-1", 1, passed, checks, thresholds, ANA)


def intend(
    ledger: Ledger,
    run_id: str,
    days: Sequence[str],
    kind: str = "publish",
    lease: float = 60.0,
    release: Mapping[str, object] | None = None,
    owes: Sequence[Owed] = (),
    consumers: Sequence[str] = (),
) -> PublicationRecord:
    return ledger.publications.intend(
        run_id,
        "publish" if kind == "publish" else "rollback",
        days,
        table=TABLE,
        person="bo",
        reason="because",
        detail={"remove": {}, "add": {day: [] for day in days}, "with_deletes": []},
        lease_seconds=lease,
        actor=BO,
        consumers=consumers,
        release=release or ({"snapshot_id": "1"} if kind == "publish" else None),
        owes=owes,
    )


def hold(
    ledger: Ledger,
    run_id: str = "bf-1",
    days: Sequence[str] = DAYS,
    consumer: str = "dashboard",
    wave: int = 1,
    **terms: Any,
) -> HoldRecord:
    """A hold of one consumer: ten minutes of notice, two hours at most."""
    wanted = HoldRequest(consumer, Hold(**{"on_timeout": "stop", "before_seconds": 600, **terms}), tuple(days), "10")
    opened = ledger.holds.open(run_id, (wanted,), wave=wave, actor=BO)
    return opened[0]


def record_file(ledger: Ledger, name: str = "orders_2026-01-03.json", content: str = "a") -> Intake:
    """A recorded file of the source orders, whose content has this hash."""
    seen = Inspection("orders", name, f"/landing/{name}", 10, content * 64, "2026-01-05T00:00:00+00:00", 2)
    intake = ledger.recordings.preview(seen, "correction")
    place = name_place(seen, intake)
    stored = StoredContent(place, place, 10, content * 64)
    until = "2026-07-01T00:00:00Z"
    return ledger.recordings.record(seen, "json", "correction", intake, stored, until, ANA)


def settle(ledger: Ledger, pub: PublicationRecord, outcome: str = "committed") -> PublicationRecord:
    if outcome == "abandoned":
        return ledger.publications.settle(pub.pub_id, "abandoned", actor=BO)
    return ledger.publications.settle(
        pub.pub_id, "committed", actor=BO, snapshot_id=f"s-{pub.pub_id}", data_files_written=0
    )


def publish(ledger: Ledger, run_id: str, days: Sequence[str] = DAYS) -> PublicationRecord:
    return settle(ledger, intend(ledger, run_id, days))


def roll_back(ledger: Ledger, run_id: str, days: Sequence[str] = DAYS) -> PublicationRecord:
    return settle(ledger, intend(ledger, run_id, days, "rollback"))


def actions(ledger: Ledger, run_id: str | None = None) -> list[str]:
    return [entry.action for entry in ledger.audit.entries(run_id)]


def cover(ledger: Ledger, name: str) -> RunRecord:
    """A run under a standing approval."""
    subject = {"product": "fin.daily_revenue"}
    digest = ledger.standing.decide("fin.daily_revenue", subject, "bo", "approved", "every night", BO).digest
    run, _ = ledger.runs.record(
        name, manifest_bytes(name), product="fin.daily_revenue", table=TABLE, partitions=DAYS[:1], chunks=(), parts={},
        actor=ANA, cover=lambda tx, made: use_standing(tx, made, digest, ANA, lambda *_: ""),
    )  # fmt: skip
    return run


def seal_member(ledger: Ledger) -> RunRecord:
    """A campaign of one member that was approved and started, and a model of dbt that was built after it."""
    product = "fin.monthly"
    pin = replace(target_pin(), table="lake.fin.monthly")
    sealed = {"product": product, "after": [], "reads": [], "live_inputs": []}
    sealed["manifest"] = to_plain(manifest(product=product, target=pin))
    campaign = {"product": product, "reason": "late", "valid_for": "7d", "supersedes": None, "members": [sealed]}
    found = {"as_of": "2026-02-15T00:00:00Z", "target": to_plain(pin), "inputs": {}, "reads": {}, "publications": {}}
    found["compacted"] = {}
    content = canonical_bytes(campaign)
    ledger.campaigns.record("ca-1", content, parts={}, actor=ANA, body={"verdicts": {}, "notes": []})
    ledger.campaigns.decide("ca-1", sha256(content), "approved", "", BO)
    derived = canonical_bytes(derive_manifest(campaign, sha256(content), product, found))
    run, _ = ledger.members.seal(
        "ca-1", product, "bf-m", found, digest=sha256(derived), judge=lambda *_: QuorumStatus(counted=("bo",)),
        parts={}, actor=ANA,
    )  # fmt: skip
    ledger.campaigns.record_step("ca-1", "fct", "built", b"{}", ANA, {})
    return run
