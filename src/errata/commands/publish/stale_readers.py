"""Record which published partitions were computed from a publication that was rolled back.

The note is a run note (``stale.<rollback>``) of the run that published them: its content is as it was, and no longer
follows from its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from errata.ledger import PartitionState, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges, sort_oldest_first
from errata.model.product import READ_AT_ITS_TIME
from errata.model.run import RunState
from errata.workspace import Workspace

STALE = "stale."
"""Name of the run note, up to the rollback that made the partitions stale."""
WHY = "parent rolled back"
_PUBLISHED = frozenset({RunState.PUBLISHED, RunState.PART_PUBLISHED})


def note_stale_readers(
    workspace: Workspace, actor: Actor, rollback: PublicationRecord, left: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Record and describe what follows from a publication that this rollback undid; safe to repeat.

    ``left`` has the reason why a person left a run as it is, by run.
    """
    told = []
    for run, manifest, partitions in _iterate_readers(workspace, actor, rollback):
        value: dict[str, Any] = {
            "why": WHY, "rollback": rollback.pub_id, "parent": rollback.run_id, "table": rollback.table,
            "partitions": list(partitions),
        }  # fmt: skip
        if left and run.run_id in left:
            value["left"] = {"person": actor.person, "why": left[run.run_id]}
        workspace.ledger.facts.record(run.run_id, f"{STALE}{rollback.pub_id}", value, actor)
        names = format_ranges(manifest.target.grain, partitions, 6)
        told.append(f"{run.product} {names} ({run.run_id}) was computed from it and is stale: {WHY}")
    return tuple(told)


def _iterate_readers(
    workspace: Workspace, actor: Actor, rollback: PublicationRecord
) -> Iterator[tuple[RunRecord, Manifest, Sequence[str]]]:
    """Runs whose published partitions read one that was rolled back, while it was accepted."""
    out_since = _find_out_since(workspace, rollback)
    for run in workspace.ledger.runs.list(states=_PUBLISHED):
        # a plan from before the publication read something else
        if run.table == rollback.table or run.planned_at <= out_since:
            continue
        manifest = workspace.ledger.runs.manifest(run.run_id, actor)
        pins = [
            pin
            for pin in manifest.inputs
            if pin.location == rollback.table and pin.version is None and pin.reference not in READ_AT_ITS_TIME
        ]
        if not pins:
            continue
        states = workspace.ledger.partitions.states(run.run_id)
        out = {name for name, state in states.items() if state is PartitionState.ACCEPTED}
        touched: set[str] = set()
        for pin in pins:
            rule = rule_of_pin(pin, manifest.target.grain)
            touched |= out if rule.is_whole else out.intersection(rule.list_touched(rollback.partitions))
        if touched:
            yield run, manifest, sort_oldest_first(manifest.target.grain, touched)


def _find_out_since(workspace: Workspace, rollback: PublicationRecord) -> str:
    """When the first publication that the rollback undid landed."""
    landed = [
        one.settled_at
        for one in workspace.ledger.publications.list(rollback.run_id)
        if one.kind == "publish" and one.settled_at and set(one.partitions) & set(rollback.partitions)
    ]
    return min(landed, default="")
