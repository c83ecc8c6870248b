"""Releases: what a release covers, and whether it still counts for the newest verdict and candidate.

The rule :func:`find_void_reason` is pure; the other functions read the ledger and the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from errata.approval.permissions import is_single_user
from errata.approval.standing import is_standing_valid
from errata.canonical import digest_of, to_plain
from errata.errors import Refused, StateRefused
from errata.gate.verdict.acceptance import find_open_warnings, format_accept_command
from errata.gate.warnings import list_acceptances_of
from errata.ledger.store.campaign_members import WITHDRAWN
from errata.model.approval import is_expired
from errata.model.duration import subtract_duration
from errata.model.product import Role
from errata.model.run import FINAL, RunState, is_clean
from errata.views import ReleasedView

if TYPE_CHECKING:
    from errata.ledger import CandidateRecord, ReleaseRecord, RunRecord, VerdictRecord
    from errata.model.audit import Actor
    from errata.model.manifest import Manifest
    from errata.workspace import Workspace

CLEAN_GATE = "clean gate"
PUBLISHABLE_STATES = (RunState.VALIDATED, RunState.PART_PUBLISHED)
"""States in which something may be released and published."""
_COMPUTING_STATES = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.STAGED})


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """The newest verdict, its candidate, and the scope that a release of them signs."""

    verdict: VerdictRecord
    candidate: CandidateRecord
    subject: ReleaseScope
    accepted: tuple[SignedWarning, ...]  # with real names instead of pseudonyms


def load_judged_candidate(workspace: Workspace, run: RunRecord) -> JudgedCandidate | None:
    """The newest judged candidate; None before a verdict, or while its candidate has no snapshot."""
    verdict = workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions)
    if verdict is None:
        return None
    candidate = next((c for c in workspace.ledger.candidates.list(run.run_id) if c.n == verdict.candidate_n), None)
    if candidate is None or candidate.snapshot_id is None:
        return None
    readable = _list_accepted_warnings(workspace, run, verdict)
    # sign the stored form with pseudonyms, so that a release stays valid after a name is erased
    with workspace.ledger.people.as_stored():
        stored = workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions) or verdict
        accepted = _list_accepted_warnings(workspace, run, stored)
    findings = {
        "passed": stored.passed,
        "checks": [dict(check) for check in stored.checks],
        "thresholds": stored.thresholds_digest,
    }
    subject = ReleaseScope(
        manifest_digest=run.manifest_digest,
        candidate=candidate.n,
        candidate_digest=candidate.digest,
        verdict=verdict.audit_seq,
        verdict_digest=digest_of(findings),
        accepted=accepted,
        partitions=run.partitions,
    )
    return JudgedCandidate(verdict, candidate, subject, readable)


def _list_accepted_warnings(workspace: Workspace, run: RunRecord, verdict: VerdictRecord) -> tuple[SignedWarning, ...]:
    found = (
        SignedWarning(one.check, one.findings, one.why, one.person)
        for one in list_acceptances_of(workspace, run, verdict)
    )
    return tuple(sorted(found, key=lambda one: (one.check, one.person)))


def find_release_digest(workspace: Workspace, run: RunRecord) -> str | None:
    """Digest that a release would sign now; None unless the candidate passed and may be published."""
    found = load_judged_candidate(workspace, run) if run.state in PUBLISHABLE_STATES else None
    return found.subject.digest if found and found.verdict.passed else None


def publishes_itself(workspace: Workspace, manifest: Manifest) -> bool:
    """Whether a clean gate is enough to publish, in the sealed plan and in the current product file alike.

    Waves go by themselves only where they say ``release: none``.
    """
    product = workspace.project.products.get(manifest.product)
    needs_person = manifest.publish.waves is not None and manifest.publish.waves.release != "none"
    return not manifest.manual and product is not None and not product.manual and not needs_person


def find_release_cutoff(workspace: Workspace, manifest: Manifest) -> datetime:
    """The oldest time at which a release still counts."""
    return subtract_duration(manifest.approval.valid, datetime.fromisoformat(workspace.ledger.now()))


def find_valid_release(
    workspace: Workspace, run: RunRecord, manifest: Manifest, found: JudgedCandidate
) -> ReleaseRecord | None:
    """The newest release that is still valid, if any."""
    rows = reversed(workspace.ledger.releases.list(run.run_id))
    return next((row for row in rows if not explain_void_release(workspace, run, manifest, found, row)), None)


def explain_void_release(
    workspace: Workspace, run: RunRecord, manifest: Manifest, found: JudgedCandidate, row: ReleaseRecord
) -> str:
    """Why a release is no longer valid; empty when it is."""
    if withdrawn := _find_withdrawal(workspace, run, row):
        return withdrawn
    holders = list_releasers(workspace, run, manifest)
    automatic = (publishes_itself(workspace, manifest) or is_standing_valid(workspace, run, manifest)) and is_clean(
        found.verdict.checks
    )
    now = datetime.fromisoformat(workspace.ledger.now())
    if row.kind == AUTOMATIC and run.wave is not None and not automatic:
        return "it was released by rule, which is judged again when the wave is published"
    return find_void_reason(
        to_plain(row), found.subject, holders, valid=manifest.approval.valid, now=now, automatic=automatic
    )


def _find_withdrawal(workspace: Workspace, run: RunRecord, row: ReleaseRecord) -> str:
    """The rollback that voids a release, because the run was computed from what it undid."""
    for name, value in workspace.ledger.facts.list(run.run_id).items():
        if name.startswith(WITHDRAWN) and int(value["seq"]) > row.audit_seq:
            return f"{value['parent']}, which it was computed from, was rolled back after it"
    return ""


def list_releasers(workspace: Workspace, run: RunRecord, manifest: Manifest) -> Releasers:
    """People who may release this run now."""
    people = workspace.project.people
    return Releasers(
        publishers=frozenset(workspace.project.list_with_role(Role.PUBLISHER)),
        breakers=frozenset(workspace.project.list_with_role(Role.BREAK_GLASS)),
        services=frozenset(name for name, person in people.items() if person.service),
        requester=workspace.project.find_case_variant(run.planned_by) or run.planned_by,
        single_user=is_single_user(workspace.project, manifest),
    )


def name_releaser(release: ReleaseRecord | None) -> str | None:
    """Name of the releaser: a person, or the clean gate."""
    if release is None:
        return None
    return CLEAN_GATE if release.kind == AUTOMATIC else release.person


def released_view(workspace: Workspace, run: RunRecord, manifest: Manifest) -> ReleasedView | None:
    """The valid release, or the newest one with the reason why it is void."""
    rows = workspace.ledger.releases.list(run.run_id)
    if run.wave is not None:
        # a release of another wave says nothing about this one
        rows = tuple(row for row in rows if list(row.subject["partitions"]) == list(run.partitions))
    if not rows:
        return None
    # validity no longer matters once the run has ended
    found = None if run.state in FINAL else load_judged_candidate(workspace, run)
    row = (find_valid_release(workspace, run, manifest, found) if found else None) or rows[-1]
    why = explain_void_release(workspace, run, manifest, found, row) if found else ""
    if not why and run.state in _COMPUTING_STATES:
        why = "the candidate that it is over was given up, because partitions are computed again"
    return ReleasedView(
        row.digest, row.person, row.at, row.kind, row.note, not why, why or None, row.break_glass or None,
        _find_publisher(workspace, row),
    )  # fmt: skip


def _find_publisher(workspace: Workspace, release: ReleaseRecord) -> str | None:
    """Who last published under this release; publications that did not land are ignored."""
    landed = [
        publication.person
        for publication in workspace.ledger.publications.list(release.run_id)
        if publication.result_snapshot_id and publication.release.get("release") == release.release_id
    ]
    return landed[-1] if landed else None


def not_validated_error(run: RunRecord, action: str, found: JudgedCandidate | None) -> StateRefused:
    """Error for a run that has nothing to release or publish."""
    verdict = ", whose newest verdict does not pass" if found and not found.verdict.passed else ""
    hint = None
    if run.state is RunState.ROLLED_BACK:
        hint = f'it is over; correct it again: errata plan {run.product} … --supersede {run.run_id} --reason "…"'
    elif found and (warned := find_open_warnings(found.verdict.checks)):
        hint = f"errata diff {run.run_id}\nthen {format_accept_command(run.run_id, warned)}"
    return StateRefused(
        f"{action} of {run.run_id} was refused; expected a validated run, found {run.state}{verdict}",
        state="main is unchanged",
        hint=hint,
        run_id=run.run_id,
    )


def refuse_checking_run(workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest, action: str) -> None:
    """Refuse to release or publish a run that only checks its table; the ledger's triggers refuse it as well."""
    if manifest.changes_table:
        return
    error = StateRefused(
        f"{action} of {run.run_id} was refused; a run of kind {manifest.kind} changes nothing and is never published",
        state="main is unchanged",
        hint=f'to correct the table: errata plan {run.product} … --reason "…"',
        run_id=run.run_id,
    )
    raise audit_refusal(workspace, actor, run, action, error)


def audit_refusal(workspace: Workspace, actor: Actor, run: RunRecord, action: str, error: Refused) -> Refused:
    """Audit a refusal and return its error, to be raised."""
    workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
    return error


FORMAT = "errata.release/1"
AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class SignedWarning:
    """An accepted warning and the person who accepted it; ``findings`` is the digest of its findings."""

    check: str
    findings: str
    why: str
    person: str


@dataclass(frozen=True, slots=True)
class ReleaseScope:
    """The content that a release signs."""

    manifest_digest: str
    candidate: int
    candidate_digest: str
    verdict: int  # sequence number of its audit entry
    verdict_digest: str  # of its findings and thresholds
    accepted: tuple[SignedWarning, ...]
    partitions: tuple[str, ...]
    format: str = FORMAT

    @property
    def content(self) -> Mapping[str, Any]:
        """The scope in its stored form."""
        found: Mapping[str, Any] = to_plain(self)
        return found

    @property
    def digest(self) -> str:
        """The digest that a release names."""
        return digest_of(self.content)


@dataclass(frozen=True, slots=True)
class Releasers:
    """People who may release, according to the current project file; service accounts never may."""

    publishers: frozenset[str]
    breakers: frozenset[str]
    services: frozenset[str]
    requester: str
    single_user: bool = False


def find_void_reason(
    release: Mapping[str, Any],
    subject: ReleaseScope,
    holders: Releasers,
    *,
    valid: str,
    now: datetime,
    automatic: bool,
) -> str:
    """Why a release is void; empty when it is valid. ``automatic``: a clean gate is enough to publish now. Pure."""
    signed, person = release["subject"], str(release["person"])
    for told, names in _VOID_REASONS:
        if any(signed.get(name) != subject.content[name] for name in names):
            return told
    if is_expired(release["at"], valid, now):
        return f"it is of {release['at'][:10]} and counts for {valid}"
    if release["kind"] == AUTOMATIC:
        return "" if automatic else "it was released by a clean gate, and the product now wants a person"
    return check_releaser(person, holders, broke_glass=bool(release["break_glass"]))


_VOID_REASONS = (
    ("the plan is another one", ("manifest_digest", "partitions")),
    ("there is a new candidate", ("candidate", "candidate_digest")),
    ("the accepted warnings are others", ("accepted",)),
    ("the candidate was judged again", ("verdict", "verdict_digest")),
    ("it is in another form", ("format",)),
)


def check_releaser(person: str, holders: Releasers, *, broke_glass: bool) -> str:
    """Why a release by this person does not count; empty when it does. Pure."""
    if holders.single_user:
        return ""
    if person in holders.services:
        return f"{person} is a service account"
    if broke_glass:
        return "" if person in holders.breakers else f"{person} no longer has the role break_glass"
    if person.casefold() == holders.requester.casefold():
        return f"{person} is the requester"
    return "" if person in holders.publishers else f"{person} no longer has the role publisher"
