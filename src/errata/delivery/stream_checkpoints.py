"""Pay ``checkpoint``: bring a stream past a publication, by copies of its checkpoint that a person starts it on.

Errata writes a copy beside the checkpoint and proves it; the checkpoint itself is never written to, and no reader is
started or stopped. A person does that and confirms it. The item is paid once the reader is past the publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from errata.canonical import to_plain
from errata.errors import EngineError, NotFound
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.checkpoint import Checkpoint
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import REWIND
from errata.model.consumer.outbox import Effect, Failed, Later, Owed, Paid, Payment
from errata.model.consumer.stream import NoRepair, Repair, RepairLater, find_position, plan_repair, prove_repair
from errata.model.manifest import Manifest
from errata.model.partition import sort_oldest_first
from errata.model.partition_sql import build_partition_filter
from errata.model.refs import DAY_MS, handover_tag
from errata.model.side_tables import is_side_table_mode
from errata.model.table import MainSnapshot
from errata.publishing.streams.positions import STARTED, find_location, list_confirmations, list_streams
from errata.workspace import Workspace

_PERSON_SECONDS, _APPEND_SECONDS = 600.0, 30.0
"""How long until an item that waits for a person, or for an append, is looked at again."""
_KEEP_DAYS = 30
"""How long the corrected partitions stay readable for a reader that has not taken them."""


def owe_checkpoints(workspace: Workspace, manifest: Manifest, event: str) -> Iterator[Owed]:
    """A repair for each stream that is declared to get one; the whole table, because a stream reads it in order."""
    if event in ("published", "rolled_back") and not is_side_table_mode(manifest.publish):
        for stream in list_streams(workspace, manifest.product):
            if stream.on_replace == REWIND:
                yield Owed(Effect.CHECKPOINT, event, stream.name)


def repair_checkpoint(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Prepare the next copy, or wait for a person; paid once nothing stops the reader any more."""
    stream, done = _find_stream(workspace, item), _list_done(workspace, item)
    prepared = item.progress.get("step")
    if prepared and prepared["copy"] not in [step["copy"] for step in done]:
        return Later(_PERSON_SECONDS, item.progress, item.waits)
    checkpoint = workspace.engines.checkpoints.read(find_location(workspace, stream) or "")
    line = workspace.engines.history.main_line(item.table)
    try:
        found = plan_repair(checkpoint, item.table, line, _list_own(workspace, line))
    except EngineError as error:
        return Failed(error.message)
    match found:
        case NoRepair(why):
            return _finish(workspace, item, checkpoint, line, done, why)
        case RepairLater(why):
            return Later(_APPEND_SECONDS, {}, why)
        case Repair() as repair:
            step = _prepare_copy(workspace, actor, item, repair, checkpoint, line)
            product = workspace.ledger.runs.get(item.run_id).product
            waits = f"a repaired checkpoint is prepared, on which a person starts it: errata consumers check {product}"
            return Later(_PERSON_SECONDS, {"step": step}, waits)


def _find_stream(workspace: Workspace, item: OutboxItem) -> Consumer:
    product = workspace.ledger.runs.get(item.run_id).product
    found = next((one for one in list_streams(workspace, product) if one.name == item.consumer), None)
    if found is None or found.checkpoint is None:
        raise NotFound(f"{item.consumer} is no stream with a checkpoint in errata.yaml any more")
    return found


def _list_done(workspace: Workspace, item: OutboxItem) -> list[Mapping[str, Any]]:
    """The copies on which people started the reader for this item; the audit log keeps them, whatever is retried."""
    entries = [one.body for one in list_confirmations(workspace, item.consumer, item.run_id)]
    return [body["repair"] for body in entries if body["step"] == STARTED and body["key"] == item.key]


def _list_own(workspace: Workspace, line: Sequence[MainSnapshot]) -> frozenset[str]:
    """Publications on main that this ledger answers for."""
    named = {one.publication for one in line} - {""}
    return frozenset(name for name in named if workspace.ledger.publications.exists(name))


def _prepare_copy(
    workspace: Workspace,
    actor: Actor,
    item: OutboxItem,
    repair: Repair,
    checkpoint: Checkpoint,
    line: Sequence[MainSnapshot],
) -> dict[str, Any]:
    """Write the copy, prove it as it is on disk, and make sure that the reader did not move meanwhile.

    A copy that is there already was made from the same checkpoint, and a reader may have been started on it.
    """
    store, declared = workspace.engines.checkpoints, checkpoint.location.partition(".errata-")[0]
    # named after what it was made from: made again it is the same, and another one if the reader has moved
    copy = f"{declared.rstrip('/')}.errata-{item.pub_id}-{checkpoint.digest[:8]}"
    proof = prove_repair(checkpoint, repair, copy, item.table, line)
    if not _is_there(workspace, copy):
        store.write(copy, repair.apply(checkpoint.files))
        proof = prove_repair(checkpoint, repair, copy, item.table, line, made=store.read(copy))
    if store.read(checkpoint.location).digest != checkpoint.digest:
        raise EngineError(f"{item.consumer} wrote to {checkpoint.location} while it was copied; stop it first")
    step = {
        "kind": repair.kind,
        "checkpoint": checkpoint.location,
        "digest": checkpoint.digest,
        "copy": copy,
        "batch": repair.batch,
        "proof": to_plain(proof),
    }
    if repair.passed:
        step["handover"] = _hand_over(workspace, actor, item, repair.passed)
    return step


def _is_there(workspace: Workspace, location: str) -> bool:
    try:
        workspace.engines.checkpoints.read(location)
    except (NotFound, EngineError):  # nothing, or what a killed process had written so far
        return False
    return True


def _hand_over(workspace: Workspace, actor: Actor, item: OutboxItem, passed: Sequence[MainSnapshot]) -> dict[str, Any]:
    """Name the partitions that the reader does not see, as they are after the last publication that it passes."""
    ledger, target = workspace.ledger, workspace.ledger.runs.manifest(item.run_id, actor).target
    found = {name for one in passed for name in ledger.publications.get(one.publication).partitions}
    partitions = sort_oldest_first(target.grain, found)
    tag = handover_tag(passed[-1].publication, item.consumer)
    now_ms = int(datetime.fromisoformat(ledger.now()).timestamp() * 1000)
    workspace.engines.pins.create(item.table, passed[-1].snapshot_id, tag, keep_ms=_KEEP_DAYS * DAY_MS, now_ms=now_ms)
    condition = build_partition_filter(target.column, target.columns[target.column], target.grain, partitions)
    return {
        "tag": tag,
        "snapshot_id": passed[-1].snapshot_id,
        "partitions": list(partitions),
        "sql": f"SELECT * FROM {item.table} VERSION AS OF '{tag}' WHERE {condition}",  # noqa: S608  for a person to read and run
    }


def _finish(
    workspace: Workspace,
    item: OutboxItem,
    checkpoint: Checkpoint,
    line: Sequence[MainSnapshot],
    steps: Sequence[Mapping[str, Any]],
    why: str,
) -> Paid:
    for step in steps:
        if "handover" in step:
            workspace.engines.pins.remove(item.table, step["handover"]["tag"])
    position = find_position(checkpoint, item.table, line)
    return Paid(
        {
            "checkpoint": checkpoint.location,
            "snapshot_id": position.offset.snapshot_id,
            "batch": position.batch.n,
            "why": why,
            "steps": list(steps),
        }
    )
