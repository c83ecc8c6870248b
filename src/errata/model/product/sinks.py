"""Sinks that a transform writes to beside its output, and what a governed run does with each. Pure.

A live job may send what it likes. A correction of last year must not: it would alert people about what they dealt with
long ago. The sealed plan decides, not the transform.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from errata.errors import TransformFailed
from errata.model.context import Mode
from errata.model.file_keys import Key, OneOf

FORBID, DROP = "forbid", "drop"


@dataclass(frozen=True, slots=True)
class SinkClass:
    """What a governed run does with a class of sinks if the product does not say, and what to do instead."""

    decision: str
    instead: str


SINK_CLASSES: dict[str, SinkClass] = {
    "analytical_table": SinkClass(FORBID, "make it a product, so that it is staged, judged and published"),
    "materialized_view": SinkClass(DROP, "it is refreshed after publication, by the consumer's refresh"),
    "live_topic": SinkClass(FORBID, "consumers of the topic would act on old events as if they were new"),
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
        Annotated[str, OneOf(FORBID, DROP)] | None,
        Key("forbid: the transform fails; drop: nothing is sent (default: by class)."),
    ] = None

    @property
    def decision(self) -> str:
        """What a governed run does."""
        return self.backfill or SINK_CLASSES[self.kind].decision


def drop_emitted(sinks: Mapping[str, Sink], sink: str, mode: Mode) -> None:
    """Return if the rows that a governed run emits to this sink are to be dropped; raise ``TransformFailed`` if not.

    The same in every mode of a governed run, so that a trial finds out what a run would refuse.
    """
    found = sinks.get(sink)
    if found is None:
        near = difflib.get_close_matches(sink, sinks, 1)
        raise TransformFailed(
            f"ctx.emit to {sink!r} was refused; expected a sink of the product, found "
            f"{', '.join(sorted(sinks)) or 'no sinks'} in the plan",
            hint=f"did you mean {near[0]}?" if near else "declare it under sinks in the product file, then plan again",
        )
    if found.decision == FORBID:
        raise TransformFailed(
            f"ctx.emit to {sink!r} was refused: the plan forbids a {mode.value} run to send to a sink of class "
            f"{found.kind}; {SINK_CLASSES[found.kind].instead}",
            hint=f"emit only if ctx.mode is LIVE, or set sinks.{sink}.backfill to drop, then plan again",
        )
