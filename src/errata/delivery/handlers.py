"""Which function pays which effect.

A handler gets the item and returns :class:`~errata.model.consumer.outbox.Paid`, or ``Later`` when its next step has to
wait, ``TryAgain`` when an attempt failed half-way, or ``Failed`` when only a person can help. Any exception is a failed
attempt, except ``MissingCredentials``, which leaves the item untouched. It may be called again with the same key after
it succeeded, because its process may die before that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, Payment
from errata.workspace import Workspace

Handler: TypeAlias = Callable[[Workspace, Actor, OutboxItem], Payment]


def load_handlers() -> Mapping[Effect, Handler]:
    """The handlers by effect; imported here, because most commands pay nothing."""
    from errata.delivery.alarms import ring_alarm
    from errata.delivery.consumer_messages import tell_consumer
    from errata.delivery.copies.copy_delivery import deliver_copy
    from errata.delivery.correction_rows import write_corrections
    from errata.delivery.current_view import refresh_view
    from errata.delivery.lineage.lineage_delivery import send_lineage
    from errata.delivery.ready_partitions import show_ready_partitions
    from errata.delivery.recoveries import recover_consumer
    from errata.delivery.stream_checkpoints import repair_checkpoint
    from errata.delivery.topics.topic_delivery import send_to_topic
    from errata.delivery.watch import watch_publication
    from errata.delivery.watermarks import move_watermark

    return {
        Effect.CORRECTIONS: write_corrections,
        Effect.VIEW: refresh_view,
        Effect.READY: show_ready_partitions,
        Effect.ALARM: ring_alarm,
        Effect.TELL: tell_consumer,
        Effect.WATERMARK: move_watermark,
        Effect.RECOVER: recover_consumer,
        Effect.WATCH: watch_publication,
        Effect.CHECKPOINT: repair_checkpoint,
        Effect.COPY: deliver_copy,
        Effect.TOPIC: send_to_topic,
        Effect.LINEAGE: send_lineage,
    }
