"""`errata show`: a plan as a view, fresh or read back from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.approval.break_glass import find_last_break_glass
from errata.approval.quorum import approvals_view, current_quorum_view
from errata.approval.release import find_release_digest, released_view
from errata.canonical import to_plain
from errata.commands.look.impact import find_touches
from errata.gate.rule_changes import read_rule_changes
from errata.model.copy.repair import CopyRepair
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import Chunk, Estimate, InputPin, Manifest, count_untouched_partitions, find_new_partitions
from errata.model.partition import WHOLE, Grain
from errata.model.product import Publish, Role
from errata.model.product.throttle import Throttle
from errata.model.refs import GUARD, base_tag, candidate_branch, input_tags, run_branch
from errata.model.run import ChunkState
from errata.views import (
    ChunkView,
    DeadlineView,
    EstimateView,
    InputView,
    LogView,
    PlanView,
    SnapshotView,
    VerdictView,
)

if TYPE_CHECKING:
    from errata.ledger import ChunkRecord, RunRecord
    from errata.model.audit import Actor
    from errata.planning.build import Plan
    from errata.ports.tables import TagOutcome
    from errata.workspace import Workspace


def plan_view(
    workspace: Workspace,
    manifest: Manifest,
    digest: str,
    *,
    run: RunRecord | None,
    plan: Plan,
    already: bool = False,
    run_id: str = "",
    pins: Sequence[TagOutcome] = (),
) -> PlanView:
    """View of a plan that was just made."""
    verdicts = tuple(VerdictView(v.rule, v.level, v.message, v.override) for v in plan.verdicts)
    return _manifest_view(
        workspace, manifest, digest, run, run_id=run_id, already=already, verdicts=verdicts,
        new=plan.new_partitions, untouched=plan.untouched_partitions,
        pins=tuple({"table": p.table, "tag": p.tag, "outcome": p.outcome, "warning": p.warning} for p in pins),
        deadline=plan.deadline,
    )  # fmt: skip


def show_plan(workspace: Workspace, actor: Actor, run_id: str) -> PlanView:
    """View of a plan from its sealed manifest."""

    def read() -> PlanView:
        run = workspace.ledger.runs.get(run_id)
        return stored_plan_view(workspace, run, workspace.ledger.runs.manifest(run.run_id, actor))

    return workspace.ledger.read_together(read)


def stored_plan_view(workspace: Workspace, run: RunRecord, manifest: Manifest) -> PlanView:
    """View of a plan from the ledger; its guardrail results come from its audit entry."""
    entries = [e for e in workspace.ledger.audit.entries(run.run_id) if e.action == "run.planned"]
    verdicts = tuple(VerdictView(*row) for row in (entries[0].body.get("verdicts", ()) if entries else ()))
    new = find_new_partitions(manifest)
    return _manifest_view(
        workspace, manifest, run.manifest_digest, run, run_id=run.run_id, already=True, verdicts=verdicts, new=new,
        untouched=count_untouched_partitions(manifest),
    )  # fmt: skip


def refused_view(workspace: Workspace, plan: Plan) -> PlanView:
    """View of a refused plan, which has no manifest."""
    product = workspace.product(plan.request.product)
    return PlanView(
        run_id="", manifest_digest="", state="refused", already=False, product=product.name,
        table=product.target.table, kind=plan.request.kind, reason=plan.request.reason,
        requested_by=plan.request.requester, order=plan.order, grain=product.target.grain.value,
        partitions=plan.partitions, chunks=tuple(map(_chunk_view, plan.chunks)), inputs=(),
        verdicts=tuple(VerdictView(v.rule, v.level, v.message, v.override) for v in plan.verdicts),
        estimate=_estimate_view(plan.estimate), refs=(), code={}, gate={},
        consumers=tuple(one.name for one in workspace.project.list_consumers(product.name)),
        untouched_partitions=plan.untouched_partitions, new_partitions=plan.new_partitions, overrides={},
        supersedes=plan.request.supersede, single_user=False, deadline=plan.deadline,
        copies=_list_copies(workspace, product.name), touches=find_touches(workspace, product.name, plan.partitions),
    )  # fmt: skip


def _manifest_view(
    workspace: Workspace,
    manifest: Manifest,
    digest: str,
    run: RunRecord | None,
    *,
    run_id: str,
    already: bool,
    verdicts: tuple[VerdictView, ...],
    new: tuple[str, ...],
    untouched: int,
    pins: tuple[Mapping[str, Any], ...] = (),
    deadline: DeadlineView | None = None,
) -> PlanView:
    name = run.run_id if run else run_id
    code, requester = manifest.code, workspace.ledger.people.name(manifest.requested_by)
    approvers = sorted(
        person.name
        for person in workspace.project.people.values()
        if Role.APPROVER in person.roles and person.name.casefold() != requester.casefold()
    )
    return PlanView(
        run_id=name, manifest_digest=digest, state=run.state.value if run else "dry-run", already=already,
        product=manifest.product, table=manifest.target.table, kind=manifest.kind, reason=manifest.reason,
        requested_by=requester, order=manifest.order, grain=manifest.target.grain.value,
        partitions=manifest.partitions, chunks=tuple(map(_chunk_view, manifest.chunks)),
        inputs=tuple(_input_view(pin, manifest.target.grain) for pin in manifest.inputs), verdicts=verdicts,
        estimate=_estimate_view(manifest.estimate),
        refs=(
            base_tag(name), *sorted({tag for _, tag in input_tags(name, manifest.inputs)}),
            *([GUARD] if manifest.chunks else []),
            *([f"table {manifest.target.shadow}"] if manifest.target.shadow else []),
            # the digest of the candidate's content is not known yet
            *([run_branch(name), candidate_branch(name, 1, "…")] if manifest.chunks else []),
        ),
        new_columns={new.name: new.type for new in manifest.target.new_columns},
        publish=publish_view(manifest.publish) | _describe_waves(manifest),
        code={
            "call": code.call, "version": code.version, "digest": code.zip_digest, "git_commit": code.git_commit,
            "git_dirty": code.git_dirty,
        },
        gate={
            "checks": len(manifest.checks), "reconciliations": len(manifest.reconcile),
            "comparisons": len(manifest.compare), **_count_controls(manifest),
            **({"distributions": len(manifest.distribution)} if manifest.distribution else {}),
        },
        consumers=manifest.consumers, untouched_partitions=untouched, new_partitions=new,
        overrides={override.rule: override.why for override in manifest.overrides},
        supersedes=manifest.supersedes, single_user=manifest.single_user,
        approvals=approvals_view(workspace, run.run_id) if run else (), pins=pins, approvers=tuple(approvers),
        planned_at=run.planned_at if run else "", prove_determinism=manifest.prove_determinism,
        throttle=_find_throttle_limits(workspace, manifest.product), deadline=deadline,
        quorum=current_quorum_view(workspace, run, manifest) if run else None,
        break_glass=find_last_break_glass(workspace, run.run_id) if run else None,
        release_digest=find_release_digest(workspace, run) if run else None,
        release=released_view(workspace, run, manifest) if run else None, manual=manifest.manual,
        restored=to_plain(manifest.restored) if manifest.restored else None,
        rewrite=to_plain(manifest.target.rewrite) if manifest.target.rewrite else None,
        rules_changed=read_rule_changes(workspace, manifest),
        clusters={one.target: one.text for one in manifest.clusters},
        sinks={name: sink.text for name, sink in manifest.sinks.items()},
        copies=() if manifest.repairs else _list_copies(workspace, manifest.product),
        repairs=tuple(_describe_repair(one) for one in manifest.repairs),
        touches=find_touches(workspace, manifest.product, manifest.partitions),
    )  # fmt: skip


def _describe_repair(repair: CopyRepair) -> dict[str, Any]:
    """What a repair replaces in one copy."""
    told = {"copy": repair.copy, "partitions": list(repair.partitions), "copy_rows": repair.copy_rows}
    return told | {"lake_rows": repair.lake_rows}


def _list_copies(workspace: Workspace, product: str) -> tuple[str, ...]:
    """Tables in warehouses whose partitions a publication replaces as well."""
    found = workspace.project.products.get(product)
    copies = found.target.copies if found else ()
    return tuple(f"{copy.name}{' (required)' if copy.required else ''}" for copy in copies)


def _describe_waves(manifest: Manifest) -> dict[str, Any]:
    if manifest.publish.waves is None:
        return {}
    # imported late: it brings the gate along, and most plans are one wave
    from errata.publishing.waves import describe_waves

    return describe_waves(manifest)


def publish_view(publish: Publish) -> dict[str, Any]:
    """Publication mode and the settings that are set."""
    found: dict[str, Any] = {"mode": publish.mode}
    if publish.merge is not None:
        found |= {"key_version": publish.merge.version, "delete": publish.merge.delete}
    settings = {"versions": publish.versions, "view": publish.view, "corrections": publish.corrections}
    found |= {key: value for key, value in settings.items() if value is not None}
    found |= {"corrections_topic": publish.corrections_topic.location} if publish.corrections_topic else {}
    found |= {"creates": list(publish.creates)} if publish.creates else {}
    freeze = {"freeze": to_plain(publish.freeze)} if publish.freeze else {}
    return {**found, "on_live_write": publish.on_live_write, **freeze}


def _count_controls(manifest: Manifest) -> dict[str, int]:
    """Number of control rules, of control partitions, and of planned partitions with too few of them."""
    beside = [rule.least for rule in manifest.distribution if rule.against == "control"]
    controls, least = manifest.control_partitions, max([0, *(rule.least for rule in manifest.control), *beside])
    return {
        "controls": len(manifest.control),
        "control_partitions": len({name for names in controls.values() for name in names}),
        "short_of_controls": sum(len(controls.get(name, ())) < least for name in manifest.partitions),
    }


def failures_view(chunks: Iterable[ChunkRecord]) -> tuple[Mapping[str, Any], ...]:
    """Failed and quarantined chunks, with the error."""
    return tuple(
        {"chunk_id": c.chunk_id, "partitions": list(c.partitions), "code": c.error_code, "error": c.error}
        for c in chunks
        if c.state in (ChunkState.FAILED, ChunkState.QUARANTINED)
    )


def _chunk_view(chunk: Chunk) -> ChunkView:
    return ChunkView(chunk.chunk_id, chunk.partitions, chunk.bytes, chunk.rows, chunk.wave)


def _find_throttle_limits(workspace: Workspace, product: str) -> dict[str, Any]:
    """Throttle limits in force now; they are not part of the manifest and may have changed since the plan."""
    found = workspace.project.products.get(product)
    in_force = to_plain((found and found.throttle) or workspace.project.throttle)
    unlimited = to_plain(Throttle())
    return {key: value for key, value in in_force.items() if value != unlimited[key]}


def _estimate_view(found: Estimate) -> EstimateView:
    middle = (found.seconds_low + found.seconds_high) // 2
    return EstimateView(found.rows, found.bytes, middle, found.usd, found.seconds_low, found.seconds_high, found.basis)


def _input_view(pin: InputPin, grain: Grain) -> InputView:
    is_table, is_pattern = pin.kind == "table", pin.kind == "files" and pin.recording is None
    return InputView(
        pin.name, pin.location if is_table else None, pin.location if is_pattern else None, pin.snapshot_id,
        pin.file_count, pin.rows, pin.bytes, pin.input_partitions, pin.reference, pin.own,
        _partitions_by_era(pin), tuple(f"{rule.name} ({rule.action})" for rule in pin.row_rules), pin.version,
        "" if pin.partition is None else rule_of_pin(pin, grain).input_grain.value,
        tuple(SnapshotView(span.snapshot_id, span.partitions) for span in pin.snapshots), pin.recording,
        pin.location if pin.topic else None, _list_offsets(pin), _log_view(pin), pin.transactions_of,
    )  # fmt: skip


def _log_view(pin: InputPin) -> LogView | None:
    log = pin.log
    if log is None:
        return None
    return LogView(
        log.declared.reading, log.position, log.base, log.transactions, log.since, log.left_out, log.left_out_names
    )


def _list_offsets(pin: InputPin) -> dict[str, tuple[int, int]]:
    return {str(one.partition): (one.start, one.end) for one in (pin.topic.ranges if pin.topic else ())}


def _partitions_by_era(pin: InputPin) -> dict[str, tuple[str, ...]]:
    if not pin.eras:
        return {}
    return {
        era.name: tuple(name for name, eras in pin.era_of.items() if era.name in eras and name != WHOLE)
        for era in pin.eras
        if any(era.name in eras for eras in pin.era_of.values())
    }
