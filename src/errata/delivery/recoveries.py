"""Pay ``recover``: make a consumer read again, and read back what it shows.

The item is about partitions, not about the publication that caused it: it compares with what is accepted when it is
paid, so that a late item cannot bring back what was rolled back. After ``refill`` everything is refreshed once more,
because a reader that fetched old rows before the publication may have filled its cache with them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from errata.delivery.consumer_steps import find_consumer
from errata.delivery.recovery_clock import note_breach
from errata.delivery.shown_values import Difference, describe_differences, find_differences, name_for_consumer
from errata.delivery.watermarks import wait_for_job
from errata.errors import EngineError, ErrataError
from errata.gate.accepted_values import read_accepted_values
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer, Verify
from errata.model.consumer.outbox import Later, Paid, Payment
from errata.model.manifest import Manifest
from errata.text.sql_names import find_column
from errata.workspace import Workspace

_STEP, _SEEN = "step", "seen"
_FILLING, _TO_READ_BACK = "filling", "to_read_back"


def recover_consumer(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Refresh what the consumer shows, wait for readers that fill caches, refresh again, and read it back.

    Each step is on record before the next: what is read back must have had the chance to be filled again.
    """
    consumer = find_consumer(workspace, item)
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    note_breach(workspace, actor, item, consumer, manifest)
    if later := wait_for_job(workspace, item, consumer, manifest):
        return later
    step, verify = item.progress.get(_STEP), consumer.verify
    if consumer.refresh and step != _TO_READ_BACK:
        seen = bool(item.progress.get(_SEEN)) or _shows_anything(workspace, item, verify, manifest)
        _refresh(workspace, item, consumer, manifest, item.partitions)
        if consumer.refill_seconds and step is None:
            return Later(consumer.refill_seconds, {_STEP: _FILLING, _SEEN: seen})
        if verify is not None:
            return Later(0, {_STEP: _TO_READ_BACK, _SEEN: seen})
    told = {"partitions": len(item.partitions), "refreshed": bool(consumer.refresh)}
    if verify is None:
        return Paid({**told, "verified": False})
    return Paid({**told, **_verify(workspace, actor, item, consumer, verify, manifest)})


def _refresh(
    workspace: Workspace, item: OutboxItem, consumer: Consumer, manifest: Manifest, partitions: Sequence[str]
) -> None:
    """Do every step in order."""
    names = [name_for_consumer(manifest.target.grain, name) for name in partitions]
    for n, step in enumerate(consumer.refresh, 1):
        try:
            workspace.engines.consumers.refresh(step, names, item.key)
        except ErrataError as error:
            raise EngineError(f"step {n} of refresh of {consumer.name}: {error.message}") from error


def _shows_anything(workspace: Workspace, item: OutboxItem, verify: Verify | None, manifest: Manifest) -> bool:
    """Whether a cache has an entry under the name that is read back: without one the name itself may be wrong."""
    if verify is None or verify.redis is None:
        return False
    return any(value is not None for value in _read_shown(workspace, item, verify, manifest).values())


def _read_shown(workspace: Workspace, item: OutboxItem, verify: Verify, manifest: Manifest) -> dict[str, str | None]:
    names = {name: name_for_consumer(manifest.target.grain, name) for name in item.partitions}
    try:
        shown = workspace.engines.consumers.read_shown(verify, tuple(dict.fromkeys(names.values())), item.key)
    except ErrataError as error:
        raise EngineError(f"{item.consumer} could not be read back: {error.message}") from error
    return {name: shown[named] for name, named in names.items()}


def _verify(
    workspace: Workspace, actor: Actor, item: OutboxItem, consumer: Consumer, verify: Verify, manifest: Manifest
) -> Mapping[str, Any]:
    """Compare what the consumer shows with what is accepted now; raises with the partitions that differ.

    A cache without an entry shows nothing wrong, and the next reader fills it.
    """
    expected = read_accepted_values(
        workspace, actor, manifest, verify.equals, item.partitions, where=f"verify of {consumer.name}"
    )
    shown = _read_shown(workspace, item, verify, manifest)
    empty = {name for name, value in shown.items() if value is None}
    is_cache = verify.redis is not None and (bool(item.progress.get(_SEEN)) or len(empty) < len(shown))
    differences = [
        one
        for one in find_differences(shown, expected.values, verify.tolerance)
        if not (is_cache and one.partition in empty)
    ]
    if differences:
        _refresh_again(workspace, item, consumer, manifest, differences)
        hidden = is_classified(workspace, manifest, verify.equals)
        told = describe_differences(consumer.name, manifest.target.grain, differences, is_classified=hidden)
        raise EngineError(told)
    found = {"equal": len(shown) - len(empty) if is_cache else len(shown), "snapshot_id": expected.snapshot_id}
    return {"verified": True, **found} | ({"empty": len(empty)} if is_cache and empty else {})


def _refresh_again(
    workspace: Workspace, item: OutboxItem, consumer: Consumer, manifest: Manifest, differences: Sequence[Difference]
) -> None:
    """Refresh what shows something wrong, for the next attempt; what shows nothing may be filled at this moment."""
    wrong = [one.partition for one in differences if one.shown is not None]
    if wrong and consumer.refresh:
        _refresh(workspace, item, consumer, manifest, wrong)


def is_classified(workspace: Workspace, manifest: Manifest, expression: str) -> bool:
    """Whether an aggregate reads a column whose values nobody may see."""
    product = workspace.project.products.get(manifest.product)
    return find_column(expression, (*manifest.classified, *(product.classified if product else ()))) is not None
