"""Pay ``lineage``: write the events of an item from the record, and send them, at least once and in order."""

from __future__ import annotations

import time

from errata.delivery.lineage.lineage_events import build_events
from errata.delivery.lineage.lineage_items import list_item_moments
from errata.errors import EngineError, MissingCredentials
from errata.failpoints import failpoint
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Failed, Later, Paid, Payment, TryAgain
from errata.ports.lineage import REFUSED
from errata.workspace import Workspace

_SENT = "sent"
"""Key of the progress: events that were taken."""
_BATCH = 50
_STEP_SECONDS = 5.0
"""How long a payment lasts until it records how far it has come."""


def send_lineage(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Send the events of an item; those that were taken are not sent again."""
    settings = workspace.project.lineage
    if settings is None:
        raise EngineError("errata.yaml no longer says where lineage goes")
    if name := workspace.project.find_unset_variable(settings):
        raise MissingCredentials(f"lineage needs the environment variable {name}, which is not set")
    events = build_events(workspace, actor, item, list_item_moments(workspace, item))
    sent, until = int(item.progress.get(_SENT, 0)), time.monotonic() + _STEP_SECONDS
    size = 1 if settings.http is not None else _BATCH  # a collector takes one event at a time
    while sent < len(events):
        try:
            workspace.engines.lineage.send(events[sent : sent + size])
        except EngineError as error:
            if error.fields.get(REFUSED):
                return Failed(error.message, {_SENT: sent})
            return TryAgain(error.message, {_SENT: sent})
        failpoint("lineage.after_send")
        sent = min(sent + size, len(events))
        if time.monotonic() > until and sent < len(events):
            return Later(0, {_SENT: sent})
    return Paid({"events": len(events), "transport": settings.transport})
