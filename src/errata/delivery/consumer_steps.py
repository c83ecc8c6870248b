"""The consumer of an item, as errata.yaml declares it now, and what has to be there to serve it."""

from __future__ import annotations

from errata.errors import MissingCredentials, UsageError
from errata.ledger import OutboxItem
from errata.model.consumer.declaration import Consumer
from errata.workspace import Workspace


def find_consumer(workspace: Workspace, item: OutboxItem) -> Consumer:
    """The consumer; raises ``MissingCredentials`` if it cannot be reached from here."""
    consumer = workspace.project.consumers.get(item.consumer)
    if consumer is None:
        raise UsageError(
            f"{item.consumer} is not a consumer of this project any more; waive the item, or declare it again",
            hint=f'errata outbox waive {item.item_id} --reason "…"',
        )
    databases = [workspace.project.warehouses.get(name) for name in _list_warehouses(consumer)]
    if missing := workspace.project.find_unset_variable(
        (consumer.refresh, consumer.verify, consumer.rerun, *databases)
    ):
        raise MissingCredentials(
            f"{item.consumer} needs the variable {missing}, which is not set here",
            state="it is still owed",
            hint="errata deliver, where the variable is set",
        )
    return consumer


def _list_warehouses(consumer: Consumer) -> tuple[str, ...]:
    steps = (*consumer.refresh, consumer.verify, consumer.state)
    return tuple(step.on for step in steps if step is not None and step.on is not None)
