"""Rebase (live wins): pin partitions again that live jobs wrote after the plan, and have workers compute them again.

The target is read before the inputs, as in the plan: a live row that is in the target by then is in its source, too.
Earlier output of those partitions is discarded; the others keep what was staged. The new candidate has another digest,
so it must be judged and released again. After ``MAX_REBASES`` rebases a live write is a conflict. So is a partition
that another run published or rolled back: that is not a live write, and the older run must not undo it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from errata.canonical import canonical_bytes, sha256, to_plain
from errata.errors import PublishConflict, Rebased
from errata.failpoints import failpoint
from errata.gate.row_accounts import list_adopted_attempts, may_have_quarantine
from errata.ledger import RunRecord
from errata.ledger.records import map_partitions_to_chunks
from errata.model.audit import Actor
from errata.model.duration import to_days
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import Chunk, InputPin, Manifest
from errata.model.partition import format_ranges, sort_oldest_first
from errata.model.rebase import LIVE_WINS, list_rebase_tags
from errata.model.refs import DAY_MS
from errata.model.run import RunState
from errata.model.waves import WaveState
from errata.planning.repin import input_from_pin, needs_repin, repin_input
from errata.ports.tables import PartitionSize
from errata.publishing.expected_files import build_replacement
from errata.publishing.replacement import examine_version
from errata.publishing.selection import audit_conflicts
from errata.text.numbers import plural
from errata.workspace import RunContext, Workspace

STALE = "waves.stale"
"""Audit action: partitions that are out read inputs of which a later wave reads a newer version."""
MAX_REBASES = 3
"""Rebases per wave; a partition that is written all the time needs a freeze or a quieter hour."""
_REBASEABLE_STATES = (RunState.STAGED, RunState.VALIDATED)


@contextmanager
def rebase_on_conflict(context: RunContext) -> Iterator[None]:
    """Turn a conflict into a rebase, raised as ``Rebased``, if the plan lets live jobs win."""
    try:
        yield
    except PublishConflict as conflict:
        if context.manifest.publish.on_live_write != LIVE_WINS or not conflict.fields.get("partitions"):
            raise
        raise _try_rebase(context.reload(), conflict) from conflict


def rebase_if_written(context: RunContext) -> None:
    """Check for live writes before a candidate is assembled, so that an unpublishable candidate is never judged."""
    if context.manifest.publish.on_live_write != LIVE_WINS or context.run.state not in _REBASEABLE_STATES:
        return
    with audit_conflicts(context.workspace, context.actor, context.run, "validate"), rebase_on_conflict(context):
        order = build_replacement(context.workspace, context.run, context.manifest, context.manifest.partitions)
        examine_version(order, context.engines.publishing.version(context.manifest.target), context.engines.content)


def _try_rebase(context: RunContext, conflict: PublishConflict) -> PublishConflict:
    before, written = context.ledger.rebases.facts(context.run_id), tuple(conflict.fields["partitions"])
    n, of_wave = len(before) + 1, [one for one in before if set(one["partitions"]) & set(context.run.partitions)]
    if len(of_wave) >= MAX_REBASES:
        which = "run" if context.wave is None else "wave"
        return _no_rebase_error(conflict, f"live won {MAX_REBASES} times in this {which}; it is not computed again")
    if context.run.state not in _REBASEABLE_STATES:
        which = "run" if context.wave is None else "wave"
        return _no_rebase_error(
            conflict, f"a part of the {which} is published already, so the rest is not computed again"
        )
    if others := _find_publications(context.workspace, context.run, conflict):
        return _no_rebase_error(conflict, f"{', '.join(others)} is a publication; live wins over live jobs only")
    grain, names = (
        context.manifest.target.grain,
        _find_partitions_to_recompute(context.workspace, context.run, context.manifest, written),
    )
    value, chunks, parts, problems = _pin_again(context.workspace, context.run, context.manifest, names)
    if problems:
        return _no_rebase_error(conflict, f"the inputs cannot be pinned again: {'; '.join(problems)}")
    # record before tagging: if this process dies in between, any worker creates the tags from the record
    told = {"written": list(written), "snapshots": list(conflict.fields.get("snapshots", ())), **value}
    failpoint("rebase.before_record")
    context.ledger.rebases.record(context.run_id, n, told, chunks, parts, context.actor)
    _note_stale_waves(context, n, names)
    failpoint("rebase.after_record")
    tag_rebases(context.workspace, context.actor, context.run)
    failpoint("rebase.after_pin")
    staged = plural(len(context.manifest.partitions) - len(names), "other partition")
    return Rebased(
        f"{conflict.message}\nlive wins: {format_ranges(grain, names)} is pinned again and waits to be computed "
        f"(rebase {len(of_wave) + 1} of at most {MAX_REBASES}); what was staged for {staged} is kept",
        state="main is unchanged; the earlier candidate is dropped, and any release of it",
        hint=f"errata run {context.run_id} --validate; then a person releases what is new",
        run_id=context.run_id,
        partitions=list(names),
        snapshots=told["snapshots"],
        rebase=n,
    )


def _note_stale_waves(context: RunContext, n: int, names: Sequence[str]) -> None:
    """Put on the record which published partitions read input partitions that are pinned again now."""
    waves = context.ledger.waves.list(context.run_id)
    out = [
        name
        for wave in waves
        if wave.state in (WaveState.PUBLISHED, WaveState.PART_PUBLISHED)
        for name in wave.partitions
    ]
    stale = find_stale_readers(context.manifest, names, out)
    if stale:
        context.ledger.audit.note(context.run_id, context.actor, STALE, {"rebase": n, "partitions": list(stale)})
        told = format_ranges(context.manifest.target.grain, stale)
        context.workspace.narrate(f"WARNING: {told} is published and read inputs that have changed since")


def find_stale_readers(manifest: Manifest, again: Sequence[str], out: Sequence[str]) -> tuple[str, ...]:
    """Partitions of ``out`` that read an input partition that computing ``again`` pins once more. Pure."""
    grain, found = manifest.target.grain, set[str]()
    for pin in filter(needs_repin, manifest.inputs):
        rule = rule_of_pin(pin, grain)
        pinned = set(rule.list_reads(again))
        found |= {name for name in out if not pinned.isdisjoint(rule.list_reads([name]))}
    return sort_oldest_first(grain, found - set(again))


def _find_publications(workspace: Workspace, run: RunRecord, conflict: PublishConflict) -> list[str]:
    """Publications among the conflicting writes, from their commits, or from the ledger if those have expired."""
    planned = datetime.fromisoformat(run.planned_at)
    accepted = workspace.ledger.partitions.accepted(run.table, conflict.fields["partitions"]).values()
    since = {one.pub_id for one in accepted if datetime.fromisoformat(one.at) >= planned}
    return sorted(since.union(conflict.fields.get("publications", ())))


def _no_rebase_error(conflict: PublishConflict, why: str) -> PublishConflict:
    freeze = "or let live jobs ask first: publish.on_live_write: freeze"
    return PublishConflict(
        f"{conflict.message}\n{why}",
        state=conflict.state,
        hint=f"{conflict.hint}\n{freeze}" if conflict.hint else freeze,
        **conflict.fields,
    )


def _find_partitions_to_recompute(
    workspace: Workspace, run: RunRecord, manifest: Manifest, written: Sequence[str]
) -> tuple[str, ...]:
    """Partitions to compute again: those that live jobs wrote, or their whole chunks if rows are counted by chunk."""
    if not may_have_quarantine(manifest, list_adopted_attempts(workspace, run.run_id)):
        return sort_oldest_first(manifest.target.grain, written)
    held = map_partitions_to_chunks(workspace.ledger.progress.chunks(run.run_id))
    chunks = {held[name] for name in written}
    return sort_oldest_first(manifest.target.grain, [name for name, chunk in held.items() if chunk in chunks])


def _pin_again(
    workspace: Workspace, run: RunRecord, manifest: Manifest, names: tuple[str, ...]
) -> tuple[dict[str, Any], list[Chunk], dict[str, bytes], list[str]]:
    """The run note, the chunks, the parts, and the problems that prevent the rebase; only reads."""
    target, engines = manifest.target, workspace.engines
    # read the target before the inputs: a false conflict is acceptable, a missed one is not
    base = engines.targets.read_target(target.table, target.column, target.grain, names)
    pins: list[InputPin] = []
    sizes: dict[str, list[PartitionSize]] = {}
    parts: dict[str, bytes] = {}
    problems: list[str] = []
    for pin in filter(needs_repin, manifest.inputs):
        rule = rule_of_pin(pin, target.grain)
        asked = rule.list_reads(names)
        found = engines.inputs.read_input(input_from_pin(pin), rule.input_grain, asked)
        made, files, wrong = repin_input(pin, found, asked, rule.input_grain, target.column_type)
        pins.append(made)
        for name in () if rule.is_wider else names:
            own = rule.without_look.list_reads([name])
            sizes.setdefault(name, []).extend(found.partitions[read] for read in own if read in found.partitions)
        parts |= files
        problems += wrong
    expected, inputs = canonical_bytes(base.expected), canonical_bytes(pins)
    parts |= {sha256(expected): expected, sha256(inputs): inputs}
    value = {
        "partitions": list(names),
        "base_snapshot_id": base.base_snapshot_id,
        "expected_part": sha256(expected),
        "pins_part": sha256(inputs),
        "inputs": {pin.name: pin.snapshot_id or f"{pin.file_count} files" for pin in pins},
    }
    return value, _build_chunks(workspace, run, names, sizes), parts, problems


def _build_chunks(
    workspace: Workspace, run: RunRecord, names: Sequence[str], sizes: Mapping[str, Sequence[PartitionSize]]
) -> list[Chunk]:
    """New chunks, one per old chunk that holds some of the partitions, so that none is larger than one that worked."""
    held = map_partitions_to_chunks(workspace.ledger.progress.chunks(run.run_id))
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(held[name], []).append(name)

    def total(chunk: Sequence[str], what: str) -> int:
        return sum(getattr(size, what) for name in chunk for size in sizes.get(name, ()))

    return [Chunk("", tuple(chunk), total(chunk, "rows"), total(chunk, "bytes")) for chunk in found.values()]


def tag_rebases(workspace: Workspace, actor: Actor, run: RunRecord) -> None:
    """Tag what rebases read; every worker repeats this, because the recording process may have died."""
    wanted = {
        where: snapshot
        for rebase in workspace.ledger.rebases.list(run.run_id)
        for where, snapshot in list_rebase_tags(run.run_id, run.table, rebase).items()
    }
    there = {table: workspace.engines.pins.refs(table) for table in {table for table, _ in wanted}}
    days = to_days(workspace.project.retention.pins)
    keep, now = days * DAY_MS, int(workspace.now().timestamp() * 1000)
    made = [
        workspace.engines.pins.create(table, snapshot, tag, keep_ms=keep, now_ms=now)
        for (table, tag), snapshot in wanted.items()
        if tag not in there[table]
    ]
    if any(pin.outcome != "already" for pin in made):
        told = [{"table": one.table, "tag": one.tag, "outcome": one.outcome, "warning": one.warning} for one in made]
        workspace.ledger.audit.note(run.run_id, actor, "pins.created", {"pins": to_plain(told)})
