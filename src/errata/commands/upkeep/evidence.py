"""`errata evidence`: export everything the ledger knows about one run, in one consistent state, as a signed bundle.

Works in every state of the run: a declined or cancelled run has evidence too. Only the diff summary needs the lake, and
only the first time; if it is missing, the bundle says why. Rows of data never enter a bundle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from errata.approval.quorum import list_approvals
from errata.canonical import canonical_bytes, sha256, to_plain
from errata.errors import AuditBroken, EngineError, NotFound, Refused
from errata.evidence.bundle import build_bundle
from errata.evidence.diff_summary import build_diff_record, store_diff_summary
from errata.evidence.head_export import load_project_key
from errata.evidence.heads import sign_head
from errata.evidence.keys import SigningKey
from errata.evidence.members import Dossier, build_members, read_verifier_source, render_readme
from errata.ledger import RunRecord
from errata.ledger.audit.excerpt import AuditExcerpt
from errata.ledger.audit.measurement_digest import measurement_bytes
from errata.model.audit import Actor, Head
from errata.model.consumer.outbox import Effect
from errata.model.copy.receipt import BASELINE
from errata.model.manifest import Manifest
from errata.model.product import Project
from errata.report.evidence_cover import render_cover
from errata.text.secrets import find_passwords, is_secret_name, list_spellings
from errata.workspace import Workspace

_MAX_TRIES = 5
_MIN_SECRET_LENGTH = 8
"""Shortest secret to search for; shorter ones would match parts of other words."""
_PEM_MARKER = b"PRIVATE KEY-----"
_PEM, _PEM_LINE = "PRIVATE KEY-----", re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_PSEUDONYM = re.compile(r"(?<![:\w])subject-[0-9a-f]{20}\b")
_SEALED = re.compile(r"sealed:subject-[0-9a-f]{20}:[A-Za-z0-9_=-]+")


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """What a bundle contains, and the digests to verify it by."""

    run_id: str
    product: str
    state: str
    manifest_digest: str
    members: tuple[str, ...]
    bytes: int
    sha256: str
    signed_by: str
    head: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def export_evidence(
    workspace: Workspace, actor: Actor, run_id: str, *, with_diff: bool = True
) -> tuple[EvidenceView, bytes]:
    """Bundle of a run, as view and bytes; changes nothing except that the diff summary is stored."""
    key = load_project_key(workspace)
    run = workspace.ledger.runs.get(run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    checked = workspace.ledger.audit.verify()
    if not checked.ok:
        raise AuditBroken(
            f"evidence of {run.run_id} was refused; expected an audit that verifies, found: {checked.reason}",
            state="nothing was written",
            hint="errata audit verify",
        )
    why_not = store_diff_summary(workspace, actor, run, manifest) if with_diff else ""
    dossier, summary = _read_consistent_dossier(workspace, actor, run.run_id, key, why_not)
    readable = dossier.readable()
    members = build_members(dossier, render_cover(readable, summary), render_readme(readable))
    refuse_secrets_in_bundle(workspace, members)
    content = build_bundle(members, dossier.predicate, key)
    missing = str(dossier.diff["missing"])
    return EvidenceView(
        run_id=run.run_id,
        product=run.product,
        state=str(dossier.run["state"]),
        manifest_digest=run.manifest_digest,
        members=tuple(sorted(members)),
        bytes=len(content),
        sha256=sha256(content),
        signed_by=key.public.keyid,
        head=dossier.run["head"],
        notes=(f"no summary of the diff: {missing}",) if missing else (),
    ), content


def _read_consistent_dossier(
    workspace: Workspace, actor: Actor, run_id: str, key: SigningKey, why_not: str
) -> tuple[Dossier, Mapping[str, Any] | None]:
    """Read until the audit head did not move meanwhile: every change writes an entry, so the records are consistent."""
    for _ in range(_MAX_TRIES):
        before = workspace.ledger.audit.head()
        # in stored form, so that records can be compared with the audit log, which is hashed with pseudonyms
        with workspace.ledger.people.as_stored():
            found, summary = _gather_dossier(workspace, actor, run_id, key, why_not)
        found = replace(found, people=_reveal_people(workspace, found))
        if workspace.ledger.audit.head() == before:
            return found, summary
    raise EngineError(
        f"evidence of {run_id} was not made; the ledger changed during each of {_MAX_TRIES} reads",
        state="nothing was written",
        hint="try again when fewer workers are running, or errata pause RUN first",
    )


def _gather_dossier(
    workspace: Workspace, actor: Actor, run_id: str, key: SigningKey, why_not: str
) -> tuple[Dossier, Mapping[str, Any] | None]:
    ledger = workspace.ledger
    run, manifest = ledger.runs.get(run_id), ledger.runs.manifest(run_id, actor)
    segment = ledger.audit.excerpt(run_id)
    seq, digest, at = ledger.audit.head()
    head = Head(ledger.ledger_id, workspace.project.name, seq, digest, at)
    changed, summary = build_diff_record(workspace, run, manifest, why_not)
    candidates = [(one, _find_part(workspace, one.digest)) for one in ledger.candidates.list(run_id)]
    publications = ledger.publications.list(run_id)
    parts = _load_parts(workspace, run_id, manifest, [digest for one in publications for digest in one.details])
    parts |= {one.digest: part for one, part in candidates if part is not None}
    if summary is not None:
        parts[str(changed["summary"])] = summary
    parts |= _load_receipts(workspace, run_id, segment)
    campaign, of_campaign = _describe_campaign(workspace, run_id)
    parts |= of_campaign
    numbers = {one.n: ledger.candidates.measurements(run_id, one.n) for one, _ in candidates}
    dossier = Dossier(
        run=_describe_run(workspace, run, manifest, head),
        plan=_describe_plan(workspace, run, manifest),
        work={
            "chunks": [_drop_fields(one, "run_id") for one in ledger.progress.chunks(run_id)],
            "attempts": [
                _drop_fields(one, "run_id", "heartbeat_at", "lease_until") for one in ledger.progress.attempts(run_id)
            ],
        },
        decisions={
            "approvals": [_drop_fields(one, "run_id") for one in list_approvals(workspace, run)],
            "releases": [
                _drop_fields(one, "run_id", "subject") | {"subject": canonical_bytes(one.subject).decode()}
                for one in ledger.releases.list(run_id)
            ],
            "warnings": [_drop_fields(one, "run_id") for one in ledger.approvals.accepted_warnings(run_id)],
            **_describe_standing(workspace, run_id),
        },
        gate={
            "candidates": [
                _drop_fields(one, "run_id", "detail") | {"rows": one.detail.get("rows", {}), "files": part is not None}
                for one, part in candidates
            ],
            "verdicts": [_drop_fields(one, "run_id") for one in ledger.candidates.verdicts(run_id)],
            "facts": {name: to_plain(value) for name, value in ledger.facts.list(run_id).items()},
        },
        publications={
            "publications": [_drop_fields(one, "run_id", "owner", "lease_until") for one in publications],
            **_describe_owed(workspace, run_id),
        },
        environment=_describe_environment(manifest),
        diff=changed,
        manifest=ledger.runs.manifest_bytes(run_id, actor),
        campaign=campaign,
        entries=segment.text(),
        head=sign_head(head, key),
        parts=parts,
        measurements={n: measurement_bytes(rows) for n, rows in numbers.items() if rows},
    )
    return dossier, _parse_summary(summary)


def _describe_owed(workspace: Workspace, run_id: str) -> dict[str, Any]:
    """What the run caused to be owed, and what became of it; nothing for a run that owed nothing."""
    items = workspace.ledger.outbox.list(run_id=run_id)
    dropped = ("run_id", "queue", "not_before", "owner", "fence", "lease_until", "progress")
    return {"owed": [_drop_fields(one, *dropped) for one in items]} if items else {}


def _load_receipts(workspace: Workspace, run_id: str, segment: AuditExcerpt) -> dict[str, bytes]:
    """What the receipts of copies say about each partition, and what people accepted in these copies meanwhile."""
    items = workspace.ledger.outbox.list(run_id=run_id)
    names = {str(one.result["contents"]) for one in items if one.effect is Effect.COPY and "contents" in one.result}
    whole = [json.loads(line["content"]) for line in segment.lines if "content" in line]
    names |= {str(one["body"]["contents"]) for one in whole if one["action"] == BASELINE}
    return {name: workspace.ledger.parts.get(name) for name in sorted(names)}


def _describe_standing(workspace: Workspace, run_id: str) -> dict[str, Any]:
    """The standing approval that covers a run, with the decisions on it; nothing for a run that people approved."""
    used = workspace.ledger.standing.find_used(run_id)
    if used is None:
        return {}
    told = {"digest": used.digest, "subject": canonical_bytes(used.subject).decode(), "at": used.at}
    return {"standing": [told | {"decisions": [_drop_fields(one, "digest") for one in used.decisions]}]}


def _describe_campaign(workspace: Workspace, run_id: str) -> tuple[Mapping[str, Any] | None, dict[str, bytes]]:
    """The campaign that a run is a member of, and the parts from which its manifest is derived again."""
    member = workspace.ledger.members.of_run(run_id)
    if member is None:
        return None, {}
    derived = workspace.ledger.parts.get(member.derived)
    named = json.loads(derived)["publications"].values()
    details = {one["detail"] for parent in named for one in parent["partitions"].values()}
    parts = {member.derived: derived, member.campaign_digest: workspace.ledger.campaigns.content(member.campaign_id)}
    parts |= {digest: workspace.ledger.parts.get(digest) for digest in details}
    return _drop_fields(member, "run_id"), parts


def _describe_run(workspace: Workspace, run: RunRecord, manifest: Manifest, head: Head) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "ledger_id": workspace.ledger.ledger_id,
        "project": manifest.project,
        "product": run.product,
        "owner": manifest.owner,
        "table": run.table,
        "kind": manifest.kind,
        "state": run.state.value,
        "requested_by": manifest.requested_by,
        "reason": manifest.reason,
        "planned_at": run.planned_at,
        "updated_at": run.updated_at,
        "manifest_digest": run.manifest_digest,
        "single_user": manifest.single_user,
        "supersedes": manifest.supersedes,
        "grain": manifest.target.grain.value,
        "rollback_window": manifest.rollback_window,
        "partitions": {name: state.value for name, state in workspace.ledger.partitions.states(run.run_id).items()},
        "head": {"seq": head.seq, "hash": head.hash, "at": head.at},
    }


def _describe_plan(workspace: Workspace, run: RunRecord, manifest: Manifest) -> dict[str, Any]:
    planned = next((one for one in workspace.ledger.audit.entries(run.run_id) if one.action == "run.planned"), None)
    rows = planned.body.get("verdicts", ()) if planned else ()
    return {
        "verdicts": [dict(zip(("rule", "level", "message", "override"), row, strict=True)) for row in rows],
        "overrides": to_plain(manifest.overrides),
        "estimate": to_plain(manifest.estimate),
    }


def _reveal_people(workspace: Workspace, dossier: Dossier) -> dict[str, Any]:
    """Names and texts behind the pseudonyms and sealed texts of this run, unless they were erased."""
    content = b"".join(build_members(dossier, "", "").values()).decode("utf-8", "replace")
    names, texts = sorted(set(_PSEUDONYM.findall(content))), sorted(set(_SEALED.findall(content)))
    known = workspace.ledger.people.reveal_data([*names, *texts])
    told = dict(zip([*names, *texts], known, strict=True))
    return {
        "names": {one: told[one] for one in names if told[one] != one},
        "texts": {one: told[one] for one in texts},
    }


def _describe_environment(manifest: Manifest) -> dict[str, Any]:
    return {
        "planned_with": manifest.code.errata_version,
        "exported_with": version("errata"),
        "verifier_sha256": sha256(read_verifier_source()),
        "code": {
            name: to_plain(getattr(manifest.code, name))
            for name in ("call", "version", "zip_digest", "config_digest", "lock_digest", "git_commit", "git_dirty")
        },
        "jars": dict(manifest.code.jars),
    }


def _load_parts(workspace: Workspace, run_id: str, manifest: Manifest, details: Iterable[str]) -> dict[str, bytes]:
    """Parts that the manifest and the rebases refer to, and the details of every publication attempt; not the code."""
    rebases = workspace.ledger.rebases.list(run_id)
    pins = (*manifest.inputs, *(pin for rebase in rebases for pin in rebase.inputs))
    names = [manifest.target.expected_part, *(pin.files_part for pin in pins), *details]
    names += [name for rebase in rebases for name in (rebase.expected_part, rebase.pins_part)]
    return {name: workspace.ledger.parts.get(name) for name in names if name}


def _find_part(workspace: Workspace, digest: str) -> bytes | None:
    try:
        return workspace.ledger.parts.get(digest)
    except NotFound:  # the candidate is older than the storage of file lists
        return None


def _parse_summary(content: bytes | None) -> Mapping[str, Any] | None:
    return None if content is None else dict(json.loads(content))


def _drop_fields(record: Any, *names: str) -> dict[str, Any]:
    return {name: value for name, value in to_plain(record).items() if name not in names}


def refuse_secrets_in_bundle(workspace: Workspace, members: Mapping[str, bytes]) -> None:
    """Final check: refuse a bundle that contains a known secret or a private key."""
    secrets = _list_secrets(workspace.project)
    for member, content in members.items():
        found = next((said for spelling, said in secrets.items() if spelling in content), "")
        if member != "verify.py" and _PEM_MARKER in content:
            found = "a private key"
        if found:
            raise Refused(
                f"evidence was refused; expected no secret in it, found {found} in {member}",
                state="nothing was written",
                hint="remove it from the product file, the reason or the note, and plan again",
            )


def _list_secrets(project: Project) -> dict[bytes, str]:
    """Every spelling of a secret that must not be in a bundle, with its description."""
    found = [(word, "a password that errata.yaml spells out") for word in project.credentials]
    for name, value in project.secrets.items():
        found += [(password, f"a password of ${{{name}}}") for password in find_passwords(value)]
        if is_secret_name(name.lower()):
            found.append((value, f"${{{name}}}"))
        # any line of a private key counts, whatever its variable is called
        found += [(line, f"${{{name}}}") for line in _PEM_LINE.findall(value.replace("\\n", " ")) if _PEM in value]
    told = (
        (spelling.encode(), said)
        for word, said in found
        if len(word) >= _MIN_SECRET_LENGTH
        for spelling in list_spellings(word)
    )
    return dict(told)
