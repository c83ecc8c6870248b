"""Seal the run of a member: read its tables as they are now, compare them with what was approved, record the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from errata.approval.quorum import build_member_check
from errata.canonical import canonical_bytes, sha256, to_plain
from errata.commands.campaign.member_state import DRIFTED
from errata.commands.plan.other_runs import list_active_runs
from errata.commands.plan.plan import tag_pinned_snapshots
from errata.delivery.obligations import list_owed_by_plan
from errata.errors import Drifted, EngineError, StateRefused
from errata.failpoints import failpoint
from errata.ledger import CampaignRecord, RunRecord
from errata.ledger.store.campaign_members import describe_drift
from errata.model.audit import Actor
from errata.model.campaign.campaign_manifest import Campaign, Member, SealedRead
from errata.model.campaign.derivation import FORMAT, INPUT_FIELDS, Drift, derive_manifest, find_drift
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin
from errata.model.partition import Grain, format_ranges
from errata.model.product import READ_AT_ITS_TIME
from errata.model.run import RunState
from errata.planning.build import build_run_id
from errata.planning.catalog_refs import refuse_lost_tags
from errata.planning.pins import find_as_of
from errata.planning.repin import input_from_pin, repin_input
from errata.ports.tables import InputState, TargetState
from errata.publishing.conflict import classify_changes
from errata.workspace import RunContext, Workspace

_MAX_LOOKS = 5
"""How often tables are looked at again that others are writing meanwhile."""


def seal_member(
    workspace: Workspace, actor: Actor, record: CampaignRecord, campaign: Campaign, product: str
) -> RunRecord:
    """Seal and approve the run of a member whose parents are published; raises ``Drifted`` if something changed."""
    member = campaign.find(product)
    _refuse_overlap(workspace, record, member)
    sealed = json.loads(workspace.ledger.campaigns.content(record.campaign_id))
    try:
        found, parts = _look_until_still(workspace, record, member)
    except _Unreadable as problem:
        raise _record_drift(workspace, actor, record, product, str(problem), ()) from None
    details = {one["detail"] for named in found["publications"].values() for one in named["partitions"].values()}
    intents = {digest: json.loads(workspace.ledger.parts.get(digest)) for digest in details}
    if drift := find_drift(sealed, product, found, intents):
        raise _record_drift(workspace, actor, record, product, describe_drift(drift), drift)
    digest = sha256(canonical_bytes(derive_manifest(sealed, record.digest, product, found)))
    failpoint("campaign.before_seal")
    run, already = workspace.ledger.members.seal(
        record.campaign_id, product, build_run_id(product, digest, workspace.now()), found, digest=digest,
        judge=build_member_check(workspace, member.manifest, record.digest, record.planned_by), parts=parts,
        actor=actor, owes=list_owed_by_plan(workspace, member.manifest),
    )  # fmt: skip
    failpoint("campaign.after_seal")
    if run.state is RunState.APPROVED:  # another process may have been faster, and have finished it
        pin_member(workspace, actor, run, is_new=not already)
    return run


class _Unreadable(Exception):
    """An input cannot be read in the way that was approved, so there is nothing to compare."""


def _record_drift(
    workspace: Workspace, actor: Actor, record: CampaignRecord, product: str, told: str, drift: Sequence[Drift]
) -> Drifted:
    """Record why a member cannot start as it was approved; returns the error to raise."""
    body = {"member": product, "told": told, "drift": to_plain(drift)}
    workspace.ledger.audit.note(record.campaign_id, actor, DRIFTED, body)
    return Drifted(
        f"{product} of {record.campaign_id} needs a new approval: {told}",
        state=f"{product} was not started; nothing of it was changed",
        hint=f"errata status {record.campaign_id}",
        drift=to_plain(drift),
    )


def pin_member(workspace: Workspace, actor: Actor, run: RunRecord, *, is_new: bool) -> None:
    """Tag what a sealed member reads; repeated when it continues, for a process that was killed in between."""
    context = RunContext(workspace, actor, run, workspace.ledger.runs.manifest(run.run_id, actor))
    refuse_lost_tags(workspace, actor, run, tag_pinned_snapshots(context), is_new=is_new)


def _refuse_overlap(workspace: Workspace, record: CampaignRecord, member: Member) -> None:
    """Refuse to start beside another run on the same partitions, which was planned before or despite the campaign."""
    manifest = member.manifest
    for run in list_active_runs(workspace, manifest.target.table, manifest.supersedes, manifest.partitions):
        both = run.partitions & frozenset(manifest.partitions)
        if both and run.run_id != manifest.supersedes:
            raise StateRefused(
                f"{member.product} of {record.campaign_id} was not started; run {run.run_id} ({run.state}) holds "
                f"{format_ranges(manifest.target.grain, both, 6)}",
                state="nothing was changed",
                hint=f"errata status {run.run_id}",
            )


@dataclass
class _Look:
    """What is found in the tables of one member."""

    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    reads: dict[str, dict[str, Any]] = field(default_factory=dict)
    publications: dict[str, dict[str, Any]] = field(default_factory=dict)
    compacted: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    states: list[InputState] = field(default_factory=list)
    parts: dict[str, bytes] = field(default_factory=dict)


def _look_until_still(
    workspace: Workspace, record: CampaignRecord, member: Member
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a member's manifest is derived from, with all reads of a table at one snapshot."""
    for _ in range(_MAX_LOOKS):
        found, parts = _look(workspace, record, member)
        if all(now["snapshot_id"] == found["inputs"][name]["snapshot_id"] for name, now in found["reads"].items()):
            return found, parts
    raise EngineError(
        f"{member.product} of {record.campaign_id} was not started; what it reads was written during each of "
        f"{_MAX_LOOKS} looks",
        state="nothing was changed",
        hint=f"try again: errata run {record.campaign_id}",
    )


def _look(workspace: Workspace, record: CampaignRecord, member: Member) -> tuple[dict[str, Any], dict[str, bytes]]:
    manifest, look = member.manifest, _Look()
    pin = manifest.target
    # the target before the inputs, as everywhere: a false conflict is acceptable, a missed one is not
    own = [name for read in member.reads if not read.from_run for name in read.fingerprints]
    state = workspace.engines.targets.read_target(pin.table, pin.column, pin.grain, (*manifest.partitions, *own))
    expected = {name: state.expected[name] for name in manifest.partitions}
    content = canonical_bytes(expected)
    look.parts[sha256(content)] = content
    fingerprints = {name: state.fingerprints[name] for name in manifest.partitions}
    _notice_compaction(
        workspace, look, pin.table, pin.column, pin.grain, pin.base_snapshot_id, pin.fingerprints, fingerprints
    )
    reads = {read.input: read for read in member.reads}
    for one in manifest.inputs:
        if one.own:
            _look_at_own_output(workspace, look, one, state, reads[one.name], manifest.partitions)
        elif one.name in reads:
            _look_at_parent(workspace, look, record, reads[one.name])
            _look_at_input(workspace, look, one, pin.grain, pin.column_type)
        elif one.version is not None or one.reference in READ_AT_ITS_TIME:
            look.inputs[one.name] = _pick_fields(one)  # read where the campaign says, whatever is there now
        else:
            _look_at_input(workspace, look, one, pin.grain, pin.column_type)
            _notice_compaction(
                workspace, look, one.location, one.partition or "", rule_of_pin(one, pin.grain).input_grain,
                one.snapshot_id, one.fingerprints, look.inputs[one.name]["fingerprints"],
            )  # fmt: skip
    found = {
        "format": FORMAT,
        "as_of": find_as_of(state, look.states),
        "target": {
            "table_uuid": state.table_uuid,
            "schema_id": state.schema_id,
            "spec_id": state.spec_id,
            "base_snapshot_id": state.base_snapshot_id,
            "expected_part": sha256(content),
            "fingerprints": fingerprints,
            "total_partitions": len(state.partitions),
        },
        "inputs": look.inputs,
        "reads": look.reads,
        "publications": look.publications,
        "compacted": look.compacted,
    }
    return to_plain(found), look.parts


def _pick_fields(pin: InputPin) -> dict[str, Any]:
    return {name: to_plain(getattr(pin, name)) for name in (*INPUT_FIELDS, "table_uuid")}


def _look_at_input(workspace: Workspace, look: _Look, pin: InputPin, grain: Grain, column_type: str) -> None:
    source = input_from_pin(pin)
    rule = rule_of_pin(pin, grain)
    facts = workspace.engines.inputs.read_input(source, rule.input_grain, pin.input_partitions)
    made, parts, problems = repin_input(pin, facts, pin.input_partitions, rule.input_grain, column_type)
    table_uuid = facts.table_uuid
    if problems and table_uuid == pin.table_uuid:
        raise _Unreadable(f"input {pin.name} can no longer be read as it was approved: {'; '.join(problems)}")
    look.inputs[pin.name] = _pick_fields(replace(made, table_uuid=table_uuid))
    look.parts |= parts
    look.states.append(facts)


def _look_at_own_output(
    workspace: Workspace, look: _Look, pin: InputPin, state: TargetState, read: SealedRead, scope: Sequence[str]
) -> None:
    """The member's own earlier output, at the base; the run computes the partitions of its scope itself."""
    inside = set(scope)
    held = [state.partitions[name] for name in pin.input_partitions if name in state.partitions and name not in inside]
    now = {name: state.fingerprints[name] for name in read.fingerprints}
    made = replace(
        pin,
        snapshot_id=state.base_snapshot_id,
        table_uuid=state.table_uuid,
        rows=sum(size.rows for size in held),
        bytes=sum(size.bytes for size in held),
        file_count=sum(size.files for size in held),
    )
    look.inputs[pin.name] = _pick_fields(made)
    look.reads[pin.name] = {"snapshot_id": state.base_snapshot_id, "fingerprints": now, "files": {}}
    _notice_compaction(
        workspace, look, read.table, read.column, read.grain, read.snapshot_id, read.fingerprints, now
    )  # fmt: skip


def _look_at_parent(workspace: Workspace, look: _Look, record: CampaignRecord, read: SealedRead) -> None:
    """A table that another member writes: which publication each partition is from, and the files that it has."""
    names = (*read.fingerprints, *read.published)
    state = workspace.engines.targets.read_target(read.table, read.column, read.grain, names)
    files = {
        name: [[file.content, file.path, file.rows] for file in state.expected[name]] for name in read.published
    }  # fmt: skip
    now = {name: state.fingerprints[name] for name in read.fingerprints}
    look.reads[read.input] = {"snapshot_id": state.base_snapshot_id, "fingerprints": now, "files": files}
    run_id = workspace.ledger.members.list(record.campaign_id)[read.from_run].run_id
    accepted = workspace.ledger.partitions.accepted(read.table, read.published)
    named = look.publications.setdefault(read.from_run, {"run_id": run_id, "partitions": {}})
    for name in read.published:
        top = accepted.get(name)
        if top is not None and top.run_id == run_id and top.origin_pub_id is not None:
            publication = workspace.ledger.publications.get(top.origin_pub_id)
            named["partitions"][name] = {"publication": publication.pub_id, "detail": publication.detail}
            _notice_compacted_output(workspace, look, read, name, publication.result_snapshot_id, files[name])
    _notice_compaction(
        workspace, look, read.table, read.column, read.grain, read.snapshot_id, read.fingerprints, now
    )  # fmt: skip


def _notice_compacted_output(
    workspace: Workspace,
    look: _Look,
    read: SealedRead,
    name: str,
    since: str | None,
    files: Sequence[Sequence[Any]],
) -> None:
    """Note a published partition whose files compaction exchanged since."""
    detail = look.publications[read.from_run]["partitions"][name]["detail"]
    added = json.loads(workspace.ledger.parts.get(detail))["add"].get(name, [])
    if sorted(map(list, files)) != sorted(map(list, added)):
        _notice_compaction(
            workspace, look, read.table, read.column, read.grain, since, {name: "published"}, {name: "found"}
        )


def _notice_compaction(
    workspace: Workspace,
    look: _Look,
    table: str,
    column: str,
    grain: Grain,
    since: str | None,
    sealed: Mapping[str, str],
    now: Mapping[str, str],
) -> None:
    """Note partitions that changed by compaction alone, with the commits that say so; others stay changed."""
    changed = [name for name in {*sealed, *now} if sealed.get(name) != now.get(name)]
    if not changed or since is None or not column:
        return
    history = workspace.engines.history.commits(table, column, grain, changed, since=since)
    # without file lists the row counts of the commits themselves have to balance
    nothing: dict[str, tuple[Any, ...]] = dict.fromkeys(changed, ())
    verdict = classify_changes(changed, history, nothing, nothing)
    for name in verdict.compacted:
        commits = [one.snapshot_id for one in history.commits if one.touches_everything or name in one.touched]
        look.compacted.setdefault(table, {})[name] = commits
