"""Release: a person's decision over candidate, verdict and accepted warnings; and what lets a publication go ahead.

``release`` records the decision and touches no table. ``warrant`` is asked at the moment of publication: every
precondition again, on today's roles, and a release that still counts. A person who publishes without one releases by
that deed; a service account needs one, or a product that publishes by itself when its gate found nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from errata.canonical import digest_of
from errata.errors import ApprovalRefused, StateRefused
from errata.executor.acceptances import accepted_in_verdict
from errata.executor.approving import approve_again, standing_of
from errata.executor.candidates import candidate_digest
from errata.executor.desk import Desk
from errata.executor.glass import raise_alarm
from errata.failpoints import failpoint
from errata.ledger import CandidateRecord, ReleaseRecord, RunRecord, VerdictRecord
from errata.model.audit import Actor
from errata.model.codec import plain
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.run import RunState
from errata.model.table import DataFile
from errata.model.views import ReleasedView, ReleaseView
from errata.publisher.releases import AUTOMATIC, Accepted, Holders, Subject, is_clean, void
from errata.publisher.requirements import Facts, unmet

__all__ = [
    "Judged",
    "Warrant",
    "goes_on",
    "judged",
    "publishes_itself",
    "release",
    "release_digest",
    "released_view",
    "require_unattended",
    "warrant",
]

S = RunState
_OPEN = (S.VALIDATED, S.PART_PUBLISHED)
CLEAN_GATE = "clean gate"


@dataclass(frozen=True, slots=True)
class Judged:
    """The newest verdict, the candidate it is about, and both as what a release is over."""

    verdict: VerdictRecord
    candidate: CandidateRecord
    subject: Subject


@dataclass(frozen=True, slots=True)
class Warrant:
    """What may be published, and by whose decision."""

    candidate: CandidateRecord
    files: tuple[DataFile, ...]
    release: ReleaseRecord
    told: dict[str, Any]  # for the intent, which keeps it


def judged(desk: Desk, run: RunRecord) -> Judged | None:
    """What there is to release; None before a verdict."""
    verdict = desk.ledger.latest_verdict(run.run_id)
    if verdict is None:
        return None
    candidate = next((c for c in desk.ledger.candidates(run.run_id) if c.n == verdict.candidate_n), None)
    if candidate is None or candidate.snapshot_id is None:
        return None
    accepted = sorted(
        (Accepted(one.check, one.findings, one.why, one.person) for one in accepted_in_verdict(desk, run)),
        key=lambda one: (one.check, one.person),
    )
    findings = {
        "passed": verdict.passed,
        "checks": [dict(check) for check in verdict.checks],
        "thresholds": verdict.thresholds_digest,
    }
    subject = Subject(
        manifest_digest=run.manifest_digest,
        candidate=candidate.n,
        candidate_digest=candidate.digest,
        verdict=verdict.audit_seq,
        verdict_digest=digest_of(findings),
        accepted=tuple(accepted),
        partitions=run.partitions,
    )
    return Judged(verdict, candidate, subject)


def release_digest(desk: Desk, run: RunRecord) -> str | None:
    """What a release would name now; None while nothing has passed."""
    found = judged(desk, run)
    return found.subject.digest if found and found.verdict.passed and run.state in _OPEN else None


def publishes_itself(desk: Desk, manifest: Manifest) -> bool:
    """Whether the product, sealed and as it is now, wants no person once its gate is clean."""
    product = desk.project.products.get(manifest.product)
    return not manifest.manual and product is not None and not product.manual


def release(desk: Desk, actor: Actor, run_id: str, digest: str | None, note: str) -> ReleaseView:
    """Sign what was judged; without a digest show what would be signed, and refuse."""
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.PUBLISHER,), "release", run.run_id)
    desk.persons_only(actor, (Role.PUBLISHER,), "release", run.run_id)
    desk.not_the_requester(actor, run.planned_by, "release", run.run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    found = judged(desk, run)
    if run.state not in _OPEN or found is None or not found.verdict.passed:
        raise _refused(desk, actor, run, "release", _not_validated(run, "release", found))
    view = _view(desk, actor, run, manifest, found)
    given = (digest or "").strip().removeprefix("sha256:").lower()
    if given != found.subject.digest:
        what = f"found {given}" if given else "found none"
        error = ApprovalRefused(
            f"release of {run.run_id} was refused; expected the digest of what is signed, {what}",
            state="nothing was changed; above is what would be signed",
            hint=f"errata release {run.run_id} --digest {found.subject.digest}",
            release=view,
        )
        raise _refused(desk, actor, run, "release", error)
    _, already = desk.ledger.record_release(
        run.run_id, found.subject.content, candidate_n=found.candidate.n, person=actor.person, kind="release",
        actor=actor, note=note,
    )  # fmt: skip
    return _view(desk, actor, run, manifest, found, already=already)


def goes_on(desk: Desk, actor: Actor, run_id: str) -> bool:
    """Whether a run that was just validated publishes by itself, done by whoever acts; says why not where it might."""
    run = desk.ledger.run(run_id)
    found = judged(desk, run)
    if run.state is not S.VALIDATED or found is None:
        return False
    if not publishes_itself(desk, desk.ledger.manifest(run.run_id, actor)):
        return False
    if not is_clean(found.verdict.checks):
        desk.narrate("not published by itself: the gate warned, so a person releases it")
        return False
    person = desk.project.people.get(actor.person)
    may = desk.project.single_user or (person is not None and Role.PUBLISHER in person.roles)
    if not may or (not desk.project.single_user and desk.project.is_same_person(actor.person, run.planned_by)):
        why = "asked for it" if may else "is no publisher"
        desk.narrate(f"not published by itself: {actor.person} {why}; next: errata publish {run.run_id}")
        return False
    return True


def require_unattended(desk: Desk, actor: Actor, run_id: str) -> None:
    """Before any work: may whoever acts publish this run, and does its product want no person?"""
    run = desk.ledger.run(run_id)
    desk.allow(actor, (Role.PUBLISHER,), "run --publish", run.run_id)
    desk.not_the_requester(actor, run.planned_by, "publish", run.run_id)
    if publishes_itself(desk, desk.ledger.manifest(run.run_id, actor)):
        return
    error = ApprovalRefused(
        f"run --publish of {run.run_id} was refused; expected a product with publish.manual false, as it was planned "
        "and as it is now; found one that a person releases",
        state="nothing was changed",
        hint=f"errata run {run.run_id} --validate; then a person: errata release {run.run_id}",
    )
    raise _refused(desk, actor, run, "run --publish", error)


def warrant(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, *, break_glass: str = "", by_itself: bool = False
) -> Warrant:
    """What may be published now; refuses, with every reason at once, when something promised no longer holds."""
    found = judged(desk, run)
    if run.state not in _OPEN or found is None or found.candidate.snapshot_id is None:
        raise _refused(desk, actor, run, "publish", _not_validated(run, "publish", found))
    candidate = found.candidate
    files = desk.engines.publishing.files_of(
        manifest.target.staging, found.candidate.snapshot_id, manifest.partitions
    )  # fmt: skip
    standing = _counting(desk, run, manifest, found)
    kind, unreleased = _authority(
        desk, actor, run, manifest, found, standing, breaks_glass=bool(break_glass), by_itself=by_itself
    )
    stands = standing_of(desk, run, manifest)
    problems = unmet(
        Facts(
            manifest_digest=run.manifest_digest,
            requested_by=manifest.requested_by,
            approvals=stands,
            approvers=frozenset(desk.project.with_role(Role.APPROVER)),
            accepted=found.subject.accepted,
            verdict_passed=found.verdict.passed,
            candidate_digest=candidate.digest,
            found_digest=candidate_digest(manifest, files),
            unreleased=unreleased,
            single_user=manifest.single_user and desk.project.single_user,
            breaks_glass=bool(break_glass),
        )
    )
    if problems:
        hint = f"errata show {run.run_id}"
        if unreleased:
            hint = f"errata release {run.run_id} --digest {found.subject.digest}"
        if not stands.is_met:
            hint = approve_again(run, stands)
        error = ApprovalRefused(
            f"publish of {run.run_id} was refused: {'; '.join(problems)}",
            state="main is unchanged; the staged output is kept",
            hint=hint,
            problems=list(problems),
        )
        raise _refused(desk, actor, run, "publish", error)
    record = standing
    if record is None or break_glass:
        record, _ = desk.ledger.record_release(
            run.run_id, found.subject.content, candidate_n=candidate.n, person=actor.person, kind=kind, actor=actor,
            break_glass=break_glass,
        )  # fmt: skip
        failpoint("publish.after_release")
    raise_alarm(desk, actor, run)
    return Warrant(candidate, files, record, _told(record, found, actor))


def _counting(desk: Desk, run: RunRecord, manifest: Manifest, found: Judged) -> ReleaseRecord | None:
    """The newest release that counts now."""
    rows = reversed(desk.ledger.releases(run.run_id))
    return next((row for row in rows if not _void(desk, run, manifest, found, row)), None)


def _void(desk: Desk, run: RunRecord, manifest: Manifest, found: Judged, row: ReleaseRecord) -> str:
    people = desk.project.people
    services = frozenset(name for name, person in people.items() if person.service)
    holders = Holders(
        publishers=frozenset(desk.project.with_role(Role.PUBLISHER)),
        breakers=frozenset(desk.project.with_role(Role.BREAK_GLASS)),
        services=services,
        requester=desk.project.spelt(run.planned_by) or run.planned_by,
        single_user=manifest.single_user and desk.project.single_user,
    )
    automatic = publishes_itself(desk, manifest) and is_clean(found.verdict.checks)
    now = datetime.fromisoformat(desk.ledger.now())
    return void(plain(row), found.subject, holders, valid=manifest.approval.valid, now=now, automatic=automatic)


def _authority(
    desk: Desk,
    actor: Actor,
    run: RunRecord,
    manifest: Manifest,
    found: Judged,
    standing: ReleaseRecord | None,
    *,
    breaks_glass: bool,
    by_itself: bool,
) -> tuple[Literal["publish", "automatic"], str]:
    """By what this actor publishes, and why that is not enough."""
    is_person = not desk.is_service(actor.person)
    if breaks_glass or standing is not None or (is_person and not by_itself):
        return "publish", ""
    itself = publishes_itself(desk, manifest)
    if itself and is_clean(found.verdict.checks):
        return "automatic", ""
    rows = desk.ledger.releases(run.run_id)
    if rows:
        said = f"the release by {rows[-1].person} no longer counts: {_void(desk, run, manifest, found, rows[-1])}"
    else:
        said = "no person has released this candidate"
    if itself:
        said += "; it does not publish by itself, because the gate warned"
    return "automatic", said


def _told(record: ReleaseRecord, found: Judged, actor: Actor) -> dict[str, Any]:
    return {
        "release": record.release_id,
        "release_digest": record.digest,
        "released_by": CLEAN_GATE if record.kind == AUTOMATIC else record.person,
        "release_kind": record.kind,
        "break_glass": record.break_glass or None,
        "verdict": found.verdict.audit_seq,
        "single_user": actor.single_user,
    }


def released_view(desk: Desk, run: RunRecord, manifest: Manifest) -> ReleasedView | None:
    """The release that counts, else the newest and why it does not."""
    rows = desk.ledger.releases(run.run_id)
    found = judged(desk, run) if rows else None
    if found is None:
        return None
    row = _counting(desk, run, manifest, found) or rows[-1]
    # what has been published is not asked again
    why = _void(desk, run, manifest, found, row) if run.state in (*_OPEN, S.PUBLISHING) else ""
    return ReleasedView(
        row.digest, row.person, row.at, row.kind, row.note, not why, why or None, row.break_glass or None
    )  # fmt: skip


def _view(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, found: Judged, *, already: bool = False
) -> ReleaseView:
    return ReleaseView(
        run_id=run.run_id,
        state=run.state.value,
        already=already,
        release_digest=found.subject.digest,
        manifest_digest=run.manifest_digest,
        candidate=found.candidate.branch,
        candidate_digest=found.candidate.digest,
        snapshot_id=found.candidate.snapshot_id or "",
        partitions=run.partitions,
        checks=dict(Counter(str(check.get("level")) for check in found.verdict.checks)),
        accepted=tuple({"check": a.check, "why": a.why, "person": a.person} for a in found.subject.accepted),
        release=released_view(desk, run, manifest),
        grain=manifest.target.grain.value,
        product=run.product,
        requested_by=run.planned_by,
        single_user=actor.single_user,
    )


def _not_validated(run: RunRecord, action: str, found: Judged | None) -> StateRefused:
    verdict = ", whose newest verdict does not pass" if found and not found.verdict.passed else ""
    return StateRefused(
        f"{action} of {run.run_id} was refused; expected a validated run, found {run.state}{verdict}",
        state="main is unchanged",
        hint=f"errata status {run.run_id}",
    )


def _refused(
    desk: Desk, actor: Actor, run: RunRecord, action: str, error: ApprovalRefused | StateRefused
) -> ApprovalRefused | StateRefused:
    desk.ledger.refuse(run.run_id, actor, action, error.message)
    return error
