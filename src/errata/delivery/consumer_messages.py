"""Owe messages to consumers, and pay ``tell``: write the message from the record, and send it.

An item has no text: reasons and names stay where they can be erased, and every attempt writes the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from errata.delivery.occasions import build_occasion
from errata.errors import EngineError, MissingCredentials
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import UNUSUAL, Channel, Consumer, Tell
from errata.model.consumer.message import write_message
from errata.model.consumer.outbox import Effect, Owed, Paid
from errata.model.product import Project
from errata.workspace import Workspace


def owe_messages(
    project: Project,
    product: str,
    event: str,
    partitions: Sequence[str],
    *,
    consumer: str | None = None,
    payload: Mapping[str, Any] | None = None,
) -> tuple[Owed, ...]:
    """Messages about an event to the consumers of a product that want them, or to one of these.

    ``payload`` is what the record does not have elsewhere, without names of people and values of classified columns:

    - ``holding``: ``hold`` (its id), ``until`` (an instant), ``acknowledge`` (whether the publication waits),
      ``on_timeout``
    - ``recovered``: ``seconds`` since the publication or rollback
    - ``failed``: ``problem``, ``item`` (the item to retry), ``differences``: ``[partition, shown, expected]`` each, and
      how many ``more`` there are
    """
    carried = _redact_texts(dict(payload or {}), project.redact)
    return tuple(
        Owed(Effect.TELL, event, one.name, tuple(partitions), carried)
        for one in project.list_consumers(product)
        if one.tell is not None and event in one.tell.on and consumer in (None, one.name)
    )


def _redact_texts(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _redact_texts(item, redact) for name, item in value.items()}
    return [_redact_texts(item, redact) for item in value] if isinstance(value, (list, tuple)) else value


def tell_consumer(workspace: Workspace, actor: Actor, item: OutboxItem) -> Paid:
    """Send one message."""
    consumer, channel = _find_channel(workspace.project, item)
    on = consumer.tell.on if consumer.tell else ()
    occasion = build_occasion(workspace, actor, item, consumer)
    message = write_message(occasion, consumer.name, item.key, item.seq or 0, on)
    record = workspace.engines.channels.send(channel, message, workspace.now())
    return Paid({"channel": channel.name, "by": channel.kind, **record})


def _find_channel(project: Project, item: OutboxItem) -> tuple[Consumer, Channel]:
    consumer = _build_addressee(item) if item.event == UNUSUAL else project.consumers.get(item.consumer)
    if consumer is None or consumer.tell is None:
        raise EngineError(f"errata.yaml no longer has a consumer {item.consumer} with tell")
    channel = project.channels.get(consumer.tell.channel)
    if channel is None:
        raise EngineError(f"errata.yaml no longer has a channel {consumer.tell.channel}")
    if name := project.find_unset_variable(channel):
        raise MissingCredentials(f"channel {channel.name} needs the environment variable {name}, which is not set")
    return consumer, channel


def _build_addressee(item: OutboxItem) -> Consumer:
    """Who gets the alarm of a watch: nobody in particular reads it, so its channel is in the item."""
    return Consumer("the watch", (item.table,), tell=Tell(item.payload["channel"], (UNUSUAL,)))
