"""What of a publication is still owed when a command has paid what it could: what, why, and what pays it. Pure.

Only rows and events that go out of the product itself; copies, consumers and messages have lines of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from errata.delivery.payment import COMMAND_SECONDS, PaymentReport
from errata.delivery.topics.topic_items import CORRECTIONS
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.manifest import Manifest

_EFFECTS = (Effect.CORRECTIONS, Effect.TOPIC)


def describe_unpaid(items: Iterable[OutboxItem], manifest: Manifest, report: PaymentReport) -> Iterator[str]:
    """One line for each item that is still owed, unless a warning of the payment says why."""
    for item in items:
        is_told = any(line.startswith(f"item {item.item_id} ") for line in report.warnings)
        if item.effect in _EFFECTS and item.state is ItemState.OWED and not is_told:
            why = _explain(item, is_out_of_time=report.is_out_of_time)
            yield f"{_describe(item, manifest)}: {why}; to pay it: errata deliver {manifest.product}"


def _describe(item: OutboxItem, manifest: Manifest) -> str:
    publish = manifest.publish
    if item.effect is Effect.CORRECTIONS:
        return f"correction rows in {publish.corrections}"
    if item.consumer == CORRECTIONS and publish.corrections_topic is not None:
        return f"correction events for {publish.corrections_topic.location}"
    return f"rows of sink {item.consumer} for {manifest.sinks[item.consumer].place}"


def _explain(item: OutboxItem, *, is_out_of_time: bool) -> str:
    if item.last_error:
        return f"the last attempt failed ({item.last_error}), and the next one has to wait"
    if item.waits:
        return f"waits for {item.waits}"
    if is_out_of_time:
        return f"not begun, because this command starts no payment after {COMMAND_SECONDS:.0f} s"
    return "waits for another payment, which is in progress or before it in its queue"
