"""What a plan knows and seals about a change log. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.model.change_log.declaration import (
    ACCEPTED,
    BEFORE,
    CHANGES,
    READING_COLUMNS,
    ChangeCapture,
    list_row_columns,
)
from errata.model.change_log.log_contents import LogFacts, LogReset, LogSpan, SpanFacts
from errata.model.change_log.log_positions import find_refusals, find_since_refusals, find_span_refusals


@dataclass(frozen=True, slots=True)
class LogState:
    """The messages of a change log as planning read them."""

    facts: LogFacts
    span: LogSpan | None = None  # None: there is none to read
    held: SpanFacts | None = None
    since: Mapping[str, int] = field(default_factory=dict)  # position of the accepted run, by partition that has one
    lacks_since: tuple[str, ...] = ()  # partitions without one

    @property
    def begins_with(self) -> tuple[int, ...]:
        """Positions of accepted runs, if there is one for every partition: their rows are the state to begin with."""
        return () if self.lacks_since else tuple(self.since.values())


@dataclass(frozen=True, slots=True)
class SealedReset:
    """A :class:`LogReset` as a manifest has it: positions are text, because not every JSON reader keeps 64 bits."""

    at: str
    lsn: str
    time_us: str
    kind: str


@dataclass(frozen=True, slots=True)
class LogPin:
    """The part of a change log that a run reads."""

    declared: ChangeCapture
    transactions: str  # the input with the ends of transactions
    base: str  # where it begins: a whole snapshot, or the position of an earlier run
    position: str  # where it ends, included
    resets: tuple[SealedReset, ...] = ()  # in it, after the base
    since: Mapping[str, str] = field(default_factory=dict)  # by partition: changes after it; others get the state
    left_out: int = 0  # transactions without an end
    left_out_names: tuple[str, ...] = ()

    @property
    def span(self) -> LogSpan:
        """Positions as numbers."""
        resets = (LogReset(int(one.at), int(one.lsn), int(one.time_us), one.kind) for one in self.resets)
        return LogSpan(int(self.base), int(self.position), tuple(resets))


def build_log_pin(declared: ChangeCapture, transactions: str, state: LogState) -> LogPin | None:
    """What is sealed; None while there is nothing to read."""
    if state.span is None:
        return None
    held = state.held or SpanFacts()
    return LogPin(
        declared=declared,
        transactions=transactions,
        base=str(state.span.base),
        position=str(state.span.position),
        resets=tuple(SealedReset(str(one.at), str(one.lsn), str(one.time_us), one.kind) for one in state.span.resets),
        since={name: str(at) for name, at in state.since.items()},
        left_out=held.open.count,
        left_out_names=held.open_names,
    )


def find_log_refusals(declared: ChangeCapture, state: LogState) -> tuple[str, ...]:
    """Every reason why the log cannot be read as declared."""
    found = list(find_refusals(declared, state.facts, state.begins_with))
    if state.span is not None:
        if state.held is not None:
            found += find_span_refusals(state.facts, state.held, declared.key)
        if declared.since == ACCEPTED and state.since:
            found += find_since_refusals(state.span, state.since)
    return tuple(found)


def build_shape_schemas(
    declared: ChangeCapture, columns: Mapping[str, str], held: SpanFacts | None
) -> tuple[Mapping[str, str], ...]:
    """Columns of each shape that rows have, as eras see them: those of the row are text, others have their type."""
    shapes = held.shapes if held is not None and held.shapes else (tuple(list_row_columns(declared, columns)),)
    prefixes = ("", BEFORE) if declared.reading == CHANGES else ("",)
    beside = READING_COLUMNS[declared.reading]
    return tuple(
        {**{f"{prefix}{name}": "string" for prefix in prefixes for name in shape}, **beside} for shape in shapes
    )
