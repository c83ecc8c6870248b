"""`errata runbook`: the twenty steps of a correction, ticked from the ledger. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from errata.commands.plan.show import stored_plan_view
from errata.commands.plan.trials import find_trial_of
from errata.commands.upkeep.note import list_notes
from errata.evidence.diff_summary import SUMMARY_FACT
from errata.ledger import OutboxItem, RunRecord
from errata.model.audit import Actor, AuditEntry
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.kind import find_kind
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges
from errata.model.run import ChunkState, PublicationState
from errata.model.waves import OUT, WaveState
from errata.report.runbook import StepAction, list_steps
from errata.text.numbers import plural
from errata.views import PlanView
from errata.views.runbook import NoteView, RunbookView
from errata.workspace import Workspace

_JUDGED = frozenset({WaveState.VALIDATED, WaveState.PUBLISHING, WaveState.PART_PUBLISHED, *OUT})


def build_runbook(workspace: Workspace, actor: Actor, run_id: str) -> RunbookView:
    """The steps of a run: who did each and when, and the command for those that are open."""

    def read() -> RunbookView:
        run = workspace.ledger.runs.get(run_id)
        manifest = workspace.ledger.runs.manifest(run.run_id, actor)
        plan, notes = stored_plan_view(workspace, run, manifest), list_notes(workspace, run)
        entries = workspace.ledger.audit.readable_entries(run.run_id)
        actions = {
            **dict(_list_sealed(run, manifest, plan)),
            **dict(_list_trials(workspace, run, manifest, entries)),
            **dict(_list_decisions(workspace, run, plan, entries)),
            **dict(_list_ends(workspace, run, entries, notes)),
        }
        not_needed = dict(_list_not_needed(manifest))
        if "published" in actions and not any(map(_is_followed, workspace.ledger.outbox.list(run_id=run.run_id))):
            not_needed["watched"] = "no copy or consumer follows it"
        steps = list_steps(actions, not_needed, _list_commands(workspace, run))
        return RunbookView(run.run_id, run.product, run.state.value, steps, notes)

    return workspace.ledger.read_together(read)


def _list_sealed(run: RunRecord, manifest: Manifest, plan: PlanView) -> Iterator[tuple[str, StepAction]]:
    """What was settled with the sealed plan, by the person who asked for it."""
    who, at, grain = run.planned_by, run.planned_at, manifest.target.grain
    touches = plan.touches
    readers = dict.fromkeys((*manifest.consumers, *(touches.consumers if touches else ())))
    below = plural(len(touches.products) if touches else 0, "product")
    reads = ", ".join(f"{pin.name} at {pin.snapshot_id or 'pinned files'}" for pin in manifest.inputs)
    references = [pin for pin in manifest.inputs if pin.reference]
    yield "reason", StepAction(who, at, manifest.reason)
    yield "readers", StepAction(who, at, f"{below} below; consumers: {', '.join(readers) or 'none declared'}")
    yield "range", StepAction(who, at, f"{format_ranges(grain, manifest.partitions)}; reads {reads or 'nothing'}")
    if manifest.restored is None:
        yield (
            "transform",
            StepAction(who, at, f"{manifest.code.call} {manifest.code.version}, {manifest.code.zip_digest[:12]}"),
        )
    if references:
        yield "reference", StepAction(who, at, ", ".join(f"{pin.name}: {pin.reference}" for pin in references))
    estimate = manifest.estimate
    rows = f"{estimate.rows:,} rows" if estimate.rows else "rows not counted"
    yield (
        "estimate",
        StepAction(who, at, f"{estimate.seconds_low}–{estimate.seconds_high} s, {estimate.usd} USD, {rows}"),
    )
    yield "mutation", StepAction(who, at, f"{manifest.publish.mode}, {manifest.publish.on_live_write} on live writes")
    if manifest.sinks:
        yield "sinks", StepAction(who, at, ", ".join(f"{name}: {one.decision}" for name, one in manifest.sinks.items()))
    yield "manifest", StepAction(who, at, run.manifest_digest)


def _list_trials(
    workspace: Workspace, run: RunRecord, manifest: Manifest, entries: Sequence[AuditEntry]
) -> Iterator[tuple[str, StepAction]]:
    """A canary of the run, or a recorded trial of the same code."""
    canary = [entry for entry in entries if entry.action in ("fact.canary", "fact.canary.rejected")]
    if canary:
        entry = canary[-1]
        passed = entry.action == "fact.canary"
        yield "trial", StepAction(entry.actor.person, entry.at, f"canary of {plural(manifest.canary, 'partition')}")
        yield "trial_judged", StepAction(entry.actor.person, entry.at, "passed" if passed else "rejected")
    elif trial := find_trial_of(workspace, run.product, manifest.code):
        yield "trial", StepAction(trial.person, trial.at, "errata try with the same code")
        yield (
            "trial_judged",
            StepAction(trial.person, trial.at, "blocked" if trial.is_blocked else "nothing was blocked"),
        )


def _list_decisions(
    workspace: Workspace, run: RunRecord, plan: PlanView, entries: Sequence[AuditEntry]
) -> Iterator[tuple[str, StepAction]]:
    approvals = [one for one in plan.approvals if one.decision == "approved"]
    if approvals and (plan.quorum is None or plan.quorum.met):
        last = approvals[-1]
        alone = ", breaking the glass" if last.break_glass else ""
        people = ", ".join(dict.fromkeys(one.person for one in approvals))
        yield "approval", StepAction(people, last.at, f"over {run.manifest_digest[:12]}{alone}")
    adopted = [entry for entry in entries if entry.action == "chunk.adopted"]
    chunks = workspace.ledger.progress.chunks(run.run_id)
    if adopted and all(chunk.state is ChunkState.DONE for chunk in chunks):
        yield "staged", StepAction(adopted[-1].actor.person, adopted[-1].at, plural(len(chunks), "chunk"))
    verdicts = workspace.ledger.candidates.verdicts(run.run_id)
    waves = workspace.ledger.waves.list(run.run_id)
    if verdicts and all(wave.state in _JUDGED for wave in waves):
        yield "judged", StepAction(verdicts[-1].person, verdicts[-1].at, "passed")
    if releases := workspace.ledger.releases.list(run.run_id):
        last_release = releases[-1]
        yield "reviewed", StepAction(last_release.person, last_release.at, f"released ({last_release.kind})")


def _list_ends(
    workspace: Workspace, run: RunRecord, entries: Sequence[AuditEntry], notes: Sequence[NoteView]
) -> Iterator[tuple[str, StepAction]]:
    committed = [
        one for one in workspace.ledger.publications.list(run.run_id) if one.state is PublicationState.COMMITTED
    ]
    if published := [one for one in committed if one.kind == "publish"]:
        last = published[-1]
        back = sum(len(one.partitions) for one in committed if one.kind == "rollback")
        count = sum(len(one.partitions) for one in published)
        said = f"{count} of {plural(len(run.partitions), 'partition')}" + (f", {back} rolled back" if back else "")
        if count >= len(run.partitions):
            yield "published", StepAction(last.person, last.settled_at or "", said)
    yield from _list_deliveries(workspace.ledger.outbox.list(run_id=run.run_id))
    # a bundle leaves one trace in the ledger, so that the same ledger gives the same bundle: the summary of the diff
    if exported := [entry for entry in entries if entry.action.startswith(f"fact.{SUMMARY_FACT}")]:
        yield "evidence", StepAction(exported[-1].actor.person, exported[-1].at, "a bundle was made")
    if notes:
        yield "notes", StepAction(notes[-1].person, notes[-1].at, plural(len(notes), "note"))


def _list_deliveries(items: Sequence[OutboxItem]) -> Iterator[tuple[str, StepAction]]:
    """Messages about the publication, and everything that follows it to consumers, once all of that has ended."""
    told = [item for item in items if item.effect is Effect.TELL and item.event == "published"]
    followed = [item for item in items if _is_followed(item)]
    for name, owed in (("told", told), ("watched", followed)):
        ended = [item for item in owed if item.state in (ItemState.PAID, ItemState.WAIVED)]
        if ended and not any(item.is_open or item.state is ItemState.CONDITIONAL for item in owed):
            yield name, StepAction("errata", max(item.ended_at or "" for item in ended), _describe_ended(ended))


def _is_followed(item: OutboxItem) -> bool:
    return item.effect.reaches_consumer or item.effect in (Effect.WATCH, Effect.COPY)


def _describe_ended(items: Sequence[OutboxItem]) -> str:
    """Whom it reached, and whom not: a consumer whose last item was waived was given up."""
    last = {(item.effect, item.consumer): item for item in sorted(items, key=lambda one: one.seq or 0)}
    given_up = dict.fromkeys(_name(item) for item in last.values() if item.state is ItemState.WAIVED)
    reached = [name for name in dict.fromkeys(map(_name, last.values())) if name not in given_up]
    return "; ".join(
        part for part in (", ".join(reached), f"given up: {', '.join(given_up)}" if given_up else "") if part
    )


def _name(item: OutboxItem) -> str:
    return item.consumer or item.effect.value


def _list_not_needed(manifest: Manifest) -> Iterator[tuple[str, str]]:
    if manifest.restored is not None:
        yield "transform", f"rows are restored from {manifest.restored.origin or 'a snapshot'}"
    if not any(pin.reference for pin in manifest.inputs):
        yield "reference", "no input is reference data"
    if not manifest.sinks:
        yield "sinks", "the product declares no sinks"
    if not find_kind(manifest.kind).changes_table:
        for name in ("approval", "reviewed", "published", "watched", "told"):
            yield name, f"{manifest.kind} changes nothing"


def _list_commands(workspace: Workspace, run: RunRecord) -> dict[str, str]:
    """The command of each step that can be done now or later."""
    name = run.run_id
    # what has failed is not paid before a person has looked at it
    failed = workspace.ledger.outbox.list(run_id=name, states=[ItemState.FAILED])
    has_failed = any(_is_followed(item) for item in failed)
    return {
        "approval": f"errata approve {name}",
        "trial": f"errata try {run.product} {run.partitions[-1]}",
        "trial_judged": f"errata try {run.product} {run.partitions[-1]}",
        "staged": f"errata run {name}",
        "judged": f"errata validate {name}",
        "reviewed": f"errata diff {name}",
        "published": f"errata publish {name}",
        "watched": f"errata outbox {name}" if has_failed else f"errata deliver {name}",
        "evidence": f"errata evidence export {name} -o {name}.errata",
        "told": f'errata note {name} "whom you informed, and how"',
        "notes": f'errata note {name} "…"',
    }
