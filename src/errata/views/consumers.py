"""What a publication does to consumers, and what people confirmed about them. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerEffectView:
    """One consumer: what a publication does to it, and what repairs that."""

    name: str
    effect: str  # reads | passes | stops | misses | lags | untouched | unknown
    repair: str
    why: str
    kind: str
    owner: str
    checkpoint: str | None = None  # of a stream: where it is now
    run_id: str | None = None  # of the oldest repair that is still owed
    steps: tuple[str, ...] = ()  # of that repair: what a person does next, in order
    waits: str = ""  # of that repair: why there is nothing to do yet


@dataclass(frozen=True, slots=True)
class ConsumersView:
    """The consumers of a product."""

    product: str
    table: str
    grain: str
    operation: str  # that Iceberg would record for the publication; empty: the table is not changed
    partitions: tuple[str, ...]  # empty: none were named
    consumers: tuple[ConsumerEffectView, ...]


@dataclass(frozen=True, slots=True)
class ConfirmView:
    """What a person confirmed about a reader, and what comes next."""

    run_id: str
    consumer: str
    step: str  # stopped | started
    checkpoint: str
    is_done: bool = False  # the reader is past the publication
    steps: tuple[str, ...] = ()  # what a person does next, in order
    waits: str = ""  # why there is nothing to do yet
    warnings: tuple[str, ...] = ()
