"""Sinks that a transform writes to beside its output, and what a governed run does with each. Pure.

A live job may send what it likes. A correction of last year must not: it would alert people about what they dealt with
long ago. The sealed plan decides, not the transform. Rows for a backfill topic are kept with the output, and sent after
its publication.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.canonical import LEFT_OUT
from errata.errors import TransformFailed
from errata.model.context import Mode
from errata.model.file_keys import Key, OneOf
from errata.model.file_values import Column, Identifier, Line

FORBID, DROP, SEND = "forbid", "drop", "send"
BACKFILL_TOPIC = "backfill_topic"


@dataclass(frozen=True, slots=True)
class SinkClass:
    """What a governed run does with a class of sinks if the product does not say, and what to do instead."""

    decision: str
    instead: str


SINK_CLASSES: dict[str, SinkClass] = {
    "analytical_table": SinkClass(FORBID, "make it a product, so that it is staged, judged and published"),
    "materialized_view": SinkClass(DROP, "it is refreshed after publication, by the consumer's refresh"),
    "live_topic": SinkClass(FORBID, "consumers of the topic would act on old events as if they were new"),
    BACKFILL_TOPIC: SinkClass(SEND, "rows go to the topic after publication, with the run in their headers"),
    "notification": SinkClass(FORBID, "tell consumers through a channel"),
    "ticket": SinkClass(FORBID, "a person opens or closes tickets after the release"),
    "search_index": SinkClass(FORBID, "rebuild it, or an index of its own, from what was published"),
    "feature_store": SinkClass(FORBID, "make its table a product, or write a version of its own after publication"),
    "cache": SinkClass(DROP, "it is rebuilt after publication, by the consumer's refresh"),
    "external_api": SinkClass(FORBID, "call it after publication, from a consumer's refresh, which has a key"),
}


@dataclass(frozen=True, slots=True)
class Sink:
    """A place that the transform sends rows to with ``ctx.emit``."""

    kind: Annotated[str, OneOf(*SINK_CLASSES), Key("What it is; decides what a run does with it.", path="class")]
    backfill: Annotated[
        Annotated[str, OneOf(FORBID, DROP, SEND)] | None,
        Key("forbid: the transform fails; drop: nothing is sent; send: only backfill_topic (default: by class)."),
    ] = None
    cluster: Annotated[Identifier | None, Key("backfill_topic: a Kafka cluster of errata.yaml.")] = field(
        default=None, metadata=LEFT_OUT
    )
    topic: Annotated[Line | None, Key("backfill_topic: a topic for corrections alone.")] = field(
        default=None, metadata=LEFT_OUT
    )
    key: Annotated[
        tuple[Column, ...],
        Key("backfill_topic: columns that tell the rows of a run apart; with the partition column of the target."),
    ] = field(default=(), metadata=LEFT_OUT)

    @property
    def decision(self) -> str:
        """What a governed run does."""
        return self.backfill or SINK_CLASSES[self.kind].decision

    @property
    def place(self) -> str:
        """The topic as screens name it; empty if it is no topic that Errata sends to."""
        return f"kafka://{self.cluster}/{self.topic}" if self.topic else ""

    @property
    def text(self) -> str:
        """What it is, and what a run does with it.

        >>> Sink("cache").text, Sink("backfill_topic", cluster="events", topic="fixes", key=("day",)).text
        ('cache: drop', 'backfill_topic: send to kafka://events/fixes after publication')
        """
        where = f" to {self.place} after publication" if self.decision == SEND else ""
        return f"{self.kind}: {self.decision}{where}"


def require_allowed_sink(sinks: Mapping[str, Sink], name: str, mode: Mode) -> Sink:
    """The sink, if a governed run may emit rows to it: they are sent or dropped; raises ``TransformFailed`` if not.

    The same in every mode of a governed run, so that a trial finds out what a run would refuse.
    """
    found = sinks.get(name)
    if found is None:
        near = difflib.get_close_matches(name, sinks, 1)
        raise TransformFailed(
            f"ctx.emit to {name!r} was refused; expected a sink of the product, found "
            f"{', '.join(sorted(sinks)) or 'no sinks'} in the plan",
            hint=f"did you mean {near[0]}?" if near else "declare it under sinks in the product file, then plan again",
        )
    if found.decision == FORBID:
        raise TransformFailed(
            f"ctx.emit to {name!r} was refused: the plan forbids a {mode.value} run to send to a sink of class "
            f"{found.kind}; {SINK_CLASSES[found.kind].instead}",
            hint=f"emit only if ctx.mode is LIVE, or set sinks.{name}.backfill to drop, then plan again",
        )
    return found


def require_row_columns(name: str, sink: Sink, partition: str, columns: tuple[str, ...] | list[str]) -> None:
    """Raise ``TransformFailed`` if rows for a topic lack the columns of its key or the partition that they go with."""
    known = {one.lower() for one in columns}
    missing = [one for one in dict.fromkeys((partition, *sink.key)) if one.lower() not in known]
    if missing:
        raise TransformFailed(
            f"ctx.emit to {name!r} was refused; expected the columns {', '.join(missing)} in the rows, found "
            f"{', '.join(columns) or 'none'}",
            hint=f"{partition} tells which publication a row goes with, sinks.{name}.key tells the rows apart",
        )
