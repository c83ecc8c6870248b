"""What an item of the outbox is about, read from the ledger, with every secret of the project redacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from errata.approval.quorum import list_approvals
from errata.delivery.message_metrics import summarize_metrics
from errata.ledger import OutboxItem, PublicationRecord
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.message import Difference, HoldNotice, Metric, Occasion, RecoveryNotice
from errata.model.duration import to_days
from errata.model.manifest import Manifest
from errata.ports.measure import Measurement
from errata.text.sql_names import find_column
from errata.workspace import Workspace

V = TypeVar("V")
_CLASSIFIED = "classified"


def build_occasion(workspace: Workspace, actor: Actor, item: OutboxItem, consumer: Consumer) -> Occasion:
    """What happened, for a message."""
    ledger = workspace.ledger
    run, manifest = ledger.runs.get(item.run_id), ledger.runs.manifest(item.run_id, actor)
    approvers = [one for one in list_approvals(workspace, run) if one.decision == "approved"]
    publication = ledger.publications.get(item.pub_id) if item.pub_id else None
    partitions = item.partitions or run.partitions
    classified = list_classified(workspace, manifest)
    by, reason = _find_cause(item, publication, approvers[-1].person if approvers else "", run.reason)
    waves = ledger.waves.list(run.run_id)
    occasion = Occasion(
        event=item.event,
        at=_find_time(item, publication),
        run_id=run.run_id,
        product=run.product,
        table=run.table,
        grain=manifest.target.grain,
        partitions=partitions,
        reason=reason,
        requested_by=run.planned_by,
        approved_by=tuple(dict.fromkeys(one.person for one in approvers)),
        by=by,
        digest=run.manifest_digest,
        snapshot_id=publication.result_snapshot_id if publication else None,
        wave=next(((one.n, len(waves)) for one in waves if set(partitions) <= set(one.partitions)), None)
        if len(waves) > 1
        else None,
        metrics=_measure(workspace, manifest, publication, partitions, classified),
        undo_until=_find_undo_end(publication, manifest) if item.event == "published" and len(waves) < 2 else "",
        hold=_build_hold(item),
        recovery=_build_recovery(item, consumer, classified),
        unusual=tuple(item.payload.get("unusual", ())),
        rollback=item.payload.get("rollback", ""),
    )
    return _redact(occasion, workspace.project.redact)


def _find_cause(
    item: OutboxItem, publication: PublicationRecord | None, approver: str, planned: str
) -> tuple[str, str]:
    """Who did it, and why."""
    if publication is not None and item.event in ("published", "rolled_back"):
        return publication.person, publication.reason
    return (approver if item.event == "approved" else ""), planned


def _find_time(item: OutboxItem, publication: PublicationRecord | None) -> str:
    landed = publication.settled_at if publication and item.event in ("published", "rolled_back") else None
    return landed or item.owed_at or item.at


def list_classified(workspace: Workspace, manifest: Manifest) -> tuple[str, ...]:
    """Columns that were classified when the plan was sealed, or are now."""
    product = workspace.project.products.get(manifest.product)
    return tuple(dict.fromkeys((*manifest.classified, *(product.classified if product else ()))))


def is_classified(workspace: Workspace, manifest: Manifest, expression: str) -> bool:
    """Whether an aggregate reads a column whose values nobody may see."""
    return find_column(expression, list_classified(workspace, manifest)) is not None


def _measure(
    workspace: Workspace,
    manifest: Manifest,
    publication: PublicationRecord | None,
    partitions: Sequence[str],
    classified: Sequence[str],
) -> tuple[Metric, ...]:
    """Numbers before and after a publication or a rollback, as the gate measured them."""
    if publication is None:
        return ()
    is_undo = publication.kind == "rollback"
    candidates = workspace.ledger.candidates
    origins = (
        _find_candidates(workspace, publication) if is_undo else {publication.release.get("candidate"): partitions}
    )
    found: list[Measurement] = []
    for n, names in origins.items():
        if n is not None:
            mine = set(names)
            found += [one for one in candidates.measurements(publication.run_id, n) if one.partition in mine]
    return summarize_metrics(manifest, found, partitions, classified, is_undo=is_undo)


def _find_candidates(workspace: Workspace, rollback: PublicationRecord) -> dict[int | None, list[str]]:
    """The candidates that were rolled back, each with its partitions."""
    latest: dict[str, int | None] = {}
    for one in workspace.ledger.publications.list(rollback.run_id):
        if one.kind == "publish" and one.result_snapshot_id is not None and one.n < rollback.n:
            latest |= dict.fromkeys(one.partitions, one.release.get("candidate"))
    found: dict[int | None, list[str]] = {}
    for name in rollback.partitions:
        found.setdefault(latest.get(name), []).append(name)
    return found


def _find_undo_end(publication: PublicationRecord | None, manifest: Manifest) -> str:
    if publication is None or publication.settled_at is None:
        return ""
    landed = datetime.fromisoformat(publication.settled_at)
    try:
        return (landed + timedelta(days=to_days(manifest.rollback_window))).isoformat()
    except OverflowError:
        return ""


def _build_hold(item: OutboxItem) -> HoldNotice | None:
    if item.event != "holding":
        return None
    # the hold by its id: a program that repeats the command acknowledges no later one
    command = f"errata ack {item.run_id} {item.consumer} --hold {item.payload['hold']}"
    command = command if item.payload.get("acknowledge") else ""
    return HoldNotice(str(item.payload.get("until", "")), command, str(item.payload.get("on_timeout", "go")))


def _build_recovery(item: OutboxItem, consumer: Consumer, classified: Sequence[str]) -> RecoveryNotice | None:
    if item.event not in ("recovered", "failed"):
        return None
    payload = item.payload
    hides = consumer.verify is not None and bool(find_column(consumer.verify.equals, classified))
    differences = tuple(
        Difference(str(name), *((_CLASSIFIED, _CLASSIFIED) if hides else (shown, expected)))
        for name, shown, expected in payload.get("differences", ())
    )
    retry = f"errata outbox retry {payload['item']}" if payload.get("item") else ""
    is_read_back = consumer.verify is not None
    return RecoveryNotice(
        seconds=payload.get("seconds"),
        problem=str(payload.get("problem", "")),
        differences=differences,
        more=int(payload.get("more", 0)),
        retry=retry,
        is_read_back=is_read_back,
    )


def _redact(value: V, redact: Callable[[str], str]) -> V:
    """The value with every text in it redacted, however deep."""
    found: Any = value
    if type(value) is str:
        found = redact(str(value))
    elif isinstance(value, tuple):
        found = tuple(_redact(one, redact) for one in value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{one.name: _redact(getattr(value, one.name), redact) for one in fields(value)})
    return found  # type: ignore[no-any-return]
