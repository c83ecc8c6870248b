"""What has to be done until a consumer shows what is published. Pure."""

from __future__ import annotations

from errata.model.consumer.declaration import Consumer
from errata.model.consumer.outbox import Effect


def list_effects(consumer: Consumer) -> tuple[Effect, ...]:
    """Effects on what a consumer keeps of the product: caches, views and watermarks.

    A job whose watermark is moved back has recovered only when it has read again.
    """
    has_watermark = consumer.state is not None or bool(consumer.rerun)
    is_read_back = bool(consumer.refresh) or consumer.verify is not None or consumer.state is not None
    return (*((Effect.WATERMARK,) if has_watermark else ()), *((Effect.RECOVER,) if is_read_back else ()))
