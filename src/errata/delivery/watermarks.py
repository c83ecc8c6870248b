"""Pay ``watermark``: let an incremental job read corrected partitions again, once.

The row of the job is moved back only while it has the value that was recorded at the first attempt, together with the
item's key. A job that was moved back and has read on is therefore never moved back again by the same item.
"""

from __future__ import annotations

from errata.delivery.consumer_steps import find_consumer
from errata.delivery.recovery_clock import find_clock
from errata.delivery.shown_values import name_for_consumer
from errata.errors import EngineError
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer, WatermarkState
from errata.model.consumer.outbox import Effect, Failed, Later, Paid, Payment
from errata.model.consumer.watermark import choose_earlier, find_start_before, has_read
from errata.model.manifest import Manifest
from errata.ports.consumers import WatermarkMove
from errata.workspace import Workspace

_RERUN_SECONDS = 3600.0
_LOOK_SECONDS, _SOON_SECONDS = 30.0, 1.0
_LONGEST_SECONDS = 7 * 86_400
"""How long a job without ``recover_within`` may take until it has read corrected partitions again."""
_OLD, _NEW = "old", "new"


def move_watermark(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Move the job's row back to just before the earliest corrected partition, or run its command."""
    consumer = find_consumer(workspace, item)
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    if consumer.state is None:
        names = [name_for_consumer(manifest.target.grain, name) for name in item.partitions]
        workspace.engines.consumers.rerun(consumer.rerun, names, item.key, _RERUN_SECONDS)
        return Paid({"rerun": len(names)})
    return _move(workspace, item, consumer.state, manifest)


def _move(workspace: Workspace, item: OutboxItem, state: WatermarkState, manifest: Manifest) -> Payment:
    watermarks, grain = workspace.engines.watermarks, manifest.target.grain
    if done := watermarks.find_move(state, item.key):
        return Paid(_describe(done))
    if _OLD not in item.progress:
        found = watermarks.read(state)
        start = find_start_before(grain, item.partitions, found.type)
        new = choose_earlier(grain, found.type, found.value, start)
        # on record before anything is changed: a later attempt compares with this value
        return Later(0, {_OLD: found.value, _NEW: new})
    old, new = item.progress[_OLD], item.progress[_NEW]
    done = watermarks.move(state, item.key, old, new)
    if done is None:
        found = watermarks.read(state)
        return Failed(
            f"the watermark of {item.consumer} was not moved: it was {old} when this began and is {found.value} now; "
            f"errata outbox retry {item.item_id} moves it from where it is"
        )
    return Paid(_describe(done))


def _describe(move: WatermarkMove) -> dict[str, str | None]:
    return {_OLD: move.old, _NEW: move.new, "moved_at": move.at}


def wait_for_job(workspace: Workspace, item: OutboxItem, consumer: Consumer, manifest: Manifest) -> Later | None:
    """Whether to look again later, because the job has not read the partitions again; raises when it takes too long."""
    if consumer.state is None:
        return None
    seconds = consumer.recover_within_seconds or _LONGEST_SECONDS
    is_over = find_clock(workspace, item, manifest, seconds).seconds_left(workspace.ledger.now_ms()) < 0
    if _has_open_move(workspace, item):
        if is_over:
            raise EngineError(f"the watermark of {consumer.name} is not moved yet")
        return Later(_SOON_SECONDS, item.progress, "its watermark has to be moved back first")
    found = workspace.engines.watermarks.read(consumer.state)
    if has_read(manifest.target.grain, found.type, found.value, item.partitions):
        return None
    if is_over:
        raise EngineError(
            f"{consumer.name} has not read the corrected partitions again: its watermark is {found.value}"
        )
    waits = f"its job has to read the corrected partitions again; the watermark is {found.value}"
    return Later(_LOOK_SECONDS, item.progress, waits)


def _has_open_move(workspace: Workspace, item: OutboxItem) -> bool:
    """Whether the move that goes with this item, or an older one of the same partitions, is still to be made."""
    return any(
        one.effect is Effect.WATERMARK
        and one.consumer == item.consumer
        and not set(item.partitions).isdisjoint(one.partitions)
        for one in workspace.ledger.outbox.list_open(table=item.table)
    )
