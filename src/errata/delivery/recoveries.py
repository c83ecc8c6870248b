"""Pay ``recover``: make a consumer read again, and read back what it shows.

The item is about partitions, not about the publication that caused it: it compares with what is accepted when it is
paid, so that a late item cannot bring back what was rolled back. After ``refill`` everything is refreshed once more,
because a reader that fetched old rows before the publication may have filled its cache with them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from errata.delivery.consumer_steps import find_consumer
from errata.delivery.occasions import is_classified
from errata.delivery.recovery_breaches import note_breach
from errata.delivery.shown_values import (
    describe_differences,
    find_differences,
    list_for_message,
    name_for_consumer,
)
from errata.delivery.watermarks import wait_for_job
from errata.errors import EngineError, ErrataError
from errata.gate.accepted_values import read_accepted_values
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer, Verify
from errata.model.consumer.message import Difference
from errata.model.consumer.outbox import Later, Paid, Payment, TryAgain
from errata.model.manifest import Manifest
from errata.text.numbers import plural
from errata.workspace import Workspace

_TIMES, _SEEN = "times", "seen"
_CACHE_SECONDS = 1.0
"""How long after a refresh a cache is read back, if ``refill`` does not say that it takes longer to be filled."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """One attempt to let a consumer show what is accepted."""

    workspace: Workspace
    actor: Actor
    item: OutboxItem
    consumer: Consumer
    manifest: Manifest

    @property
    def times(self) -> int:
        """How often everything was refreshed before this attempt."""
        return int(self.item.progress.get(_TIMES, 0))

    @property
    def is_cached(self) -> bool:
        """Whether entries of a cache are read back."""
        return self.consumer.verify is not None and self.consumer.verify.redis is not None

    @property
    def settling_seconds(self) -> float:
        """How long others may take to fill what was refreshed."""
        return self.consumer.refill_seconds or (_CACHE_SECONDS if self.is_cached else 0)


def recover_consumer(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Refresh what the consumer shows, give others the time to fill it again, and read it back."""
    consumer = find_consumer(workspace, item)
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    note_breach(workspace, actor, item, consumer, manifest)
    if later := wait_for_job(workspace, item, consumer, manifest):
        return later
    recovery = Recovery(workspace, actor, item, consumer, manifest)
    if consumer.refresh and not recovery.times:
        # before the refresh: an entry that was there shows that the name is right
        seen = recovery.is_cached and any(value is not None for value in _read_shown(recovery).values())
        _refresh(recovery, item.partitions)
        if consumer.verify is not None or consumer.refill_seconds:
            seconds = recovery.settling_seconds
            waits = "it was refreshed, and is read back when others had the time to fill it" if seconds else ""
            return Later(seconds, {_TIMES: 1, _SEEN: seen}, waits)
    return _read_back(recovery)


def _read_back(recovery: Recovery) -> Payment:
    """Compare what is shown; what is wrong is refreshed, and read again when others had the time to fill it."""
    consumer, item = recovery.consumer, recovery.item
    told = {"partitions": len(item.partitions), "refreshed": bool(consumer.refresh)}
    if consumer.verify is None:
        if consumer.refill_seconds:
            _refresh(recovery, item.partitions)
        return Paid({**told, "verified": False})
    found = _compare(recovery, consumer.verify)
    if found.differences and consumer.refresh and not recovery.is_cached:
        # views and programs show the new value at once
        _refresh(recovery, [one.partition for one in found.differences])
        found = _compare(recovery, consumer.verify)
    elif found.differences and consumer.refresh:
        _refresh(recovery, [one.partition for one in found.differences if one.shown is not None])
    elif consumer.refill_seconds and recovery.times == 1:
        # a reader that began before the publication has written by now; if it does so at this moment, this removes it
        _refresh(recovery, item.partitions)
    if found.differences:
        hidden = is_classified(recovery.workspace, recovery.manifest, consumer.verify.equals)
        grain = recovery.manifest.target.grain
        error = describe_differences(consumer.name, grain, found.differences, is_classified=hidden)
        progress = {_TIMES: recovery.times + 1, _SEEN: found.is_seen}
        problem = {"problem": f"it still differs after {plural(item.attempts, 'attempt')}"}
        listed = list_for_message(found.differences, is_classified=hidden)
        return TryAgain(error, progress, recovery.settling_seconds, problem | listed)
    return Paid({**told, "verified": True, **found.counts})


def _refresh(recovery: Recovery, partitions: Sequence[str]) -> None:
    """Do every step in order."""
    names = [name_for_consumer(recovery.manifest.target.grain, name) for name in partitions]
    for n, step in enumerate(recovery.consumer.refresh if names else (), 1):
        try:
            recovery.workspace.engines.consumers.refresh(step, names, recovery.item.key)
        except ErrataError as error:
            raise EngineError(f"step {n} of refresh of {recovery.consumer.name}: {error.message}") from error


def _read_shown(recovery: Recovery) -> dict[str, str | None]:
    item, verify = recovery.item, recovery.consumer.verify
    names = {name: name_for_consumer(recovery.manifest.target.grain, name) for name in item.partitions}
    if verify is None:
        return {}
    try:
        shown = recovery.workspace.engines.consumers.read_shown(verify, tuple(dict.fromkeys(names.values())), item.key)
    except ErrataError as error:
        raise EngineError(f"{item.consumer} could not be read back: {error.message}") from error
    return {name: shown[named] for name, named in names.items()}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What differs, and what is on record if nothing does."""

    differences: tuple[Difference, ...]
    is_seen: bool  # a cache had an entry under one of the names, at this or an earlier publication or rollback
    counts: Mapping[str, Any]


def _compare(recovery: Recovery, verify: Verify) -> _Comparison:
    """Compare what the consumer shows with what is accepted now.

    A cache without an entry shows nothing wrong, and the next reader fills it. But a name under which no entry was ever
    seen may be a wrong name, so that it proves nothing.
    """
    item, where = recovery.item, f"verify of {recovery.consumer.name}"
    expected = read_accepted_values(
        recovery.workspace, recovery.actor, recovery.manifest, verify.equals, item.partitions, where=where
    )
    shown = _read_shown(recovery)
    empty = {name for name, value in shown.items() if value is None}
    is_seen = recovery.is_cached and (len(empty) < len(shown) or _was_seen(recovery, verify))
    differences = find_differences(shown, expected.values, verify.tolerance)
    wrong = tuple(one for one in differences if not (is_seen and one.partition in empty))
    counts = {"equal": len(shown) - (len(empty) if is_seen else 0), "snapshot_id": expected.snapshot_id}
    counts |= {"empty": len(empty)} if is_seen and empty else {}
    return _Comparison(wrong, is_seen, counts | ({_SEEN: verify.get} if is_seen else {}))


def _was_seen(recovery: Recovery, verify: Verify) -> bool:
    """Whether an entry was found before under a name of this form: in this item, or in the one before it.

    Nobody may have read the dashboard between a publication and its rollback, and then its cache is still empty.
    """
    if recovery.item.progress.get(_SEEN):
        return True
    last = recovery.workspace.ledger.outbox.find_last_paid(recovery.item.queue)
    return last is not None and last.result.get(_SEEN) == verify.get
