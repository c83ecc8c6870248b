"""Read how far the streams have come that read a product, and what people confirmed about them."""

from __future__ import annotations

from errata.errors import EngineError, NotFound, SetupError
from errata.model.audit import AuditEntry
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import STREAM, StreamState
from errata.model.product import Product
from errata.workspace import Workspace

CONFIRMED = "consumer.confirmed"
"""Audit action: a person stopped a reader, or started it on a repaired copy of its checkpoint."""
STOPPED, STARTED = "stopped", "started"


def list_streams(workspace: Workspace, product: str) -> tuple[Consumer, ...]:
    """Consumers of a product that are streams."""
    return tuple(one for one in workspace.project.list_consumers(product) if one.kind == STREAM)


def read_streams(workspace: Workspace, product: Product) -> dict[str, StreamState]:
    """State of every stream that reads the product, by name."""
    table = product.target.table
    return {one.name: read_stream(workspace, one, table) for one in list_streams(workspace, product.name)}


def read_stream(workspace: Workspace, consumer: Consumer, table: str) -> StreamState:
    """State of a stream; what cannot be read is a problem in it, never an error."""
    location = find_location(workspace, consumer)
    if location is None:
        return StreamState()
    try:
        checkpoint = workspace.engines.checkpoints.read(location)
        return StreamState(checkpoint, workspace.engines.history.main_line(table))
    except (EngineError, NotFound, SetupError) as error:
        return StreamState(problem=error.message)


def find_location(workspace: Workspace, consumer: Consumer) -> str | None:
    """Where the reader keeps its checkpoint now: where errata.yaml says, or the copy on which it was started since."""
    location = consumer.checkpoint
    for entry in list_confirmations(workspace, consumer.name):
        if entry.body["step"] == STARTED and entry.body["repair"]["checkpoint"] == location:
            location = entry.body["repair"]["copy"]
    return location


def list_confirmations(workspace: Workspace, consumer: str, run_id: str | None = None) -> tuple[AuditEntry, ...]:
    """What people confirmed about a consumer, oldest first."""
    if not workspace.ledger.exists():
        return ()
    entries = workspace.ledger.audit.readable_entries(run_id, actions=(CONFIRMED,))
    return tuple(entry for entry in entries if entry.body["consumer"] == consumer)
