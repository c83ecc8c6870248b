"""What a publication does to a consumer, and what repairs it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from errata.errors import EngineError
from errata.model.consumer.checkpoint import Checkpoint
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.stream import (
    APPEND,
    DELETE,
    OPTIONS,
    OVERWRITE,
    StreamPosition,
    fails_when_available_now,
    find_position,
    list_blockers,
    list_unread,
    proves_option,
    require_stateless,
)
from errata.model.table import MainSnapshot
from errata.text.numbers import plural

STREAM, WATERMARK = "iceberg-stream", "watermark"
SKIP, REWIND, STOP = "skip", "rewind", "stop"


@dataclass(frozen=True, slots=True)
class ConsumerEffect:
    """What a publication does to one consumer.

    ``reads``: it sees the new rows. ``passes``: it continues without them. ``stops``: it fails. ``misses``: it does not
    read the partitions again. ``lags``: it shows old rows until it is refreshed. ``untouched``: its table is not
    changed. ``unknown``: nothing shows it.
    """

    name: str
    effect: str
    why: str
    repair: str = ""
    level: str = "ok"  # of the plan's guardrail: ok | warn | refuse


@dataclass(frozen=True, slots=True)
class StreamState:
    """What is known about a stream: its checkpoint and the table that it reads, or why there is none."""

    checkpoint: Checkpoint | None = None
    line: Sequence[MainSnapshot] = ()
    problem: str = ""


def judge_consumer(
    consumer: Consumer, table: str, operation: str, scope: str, stream: StreamState | None
) -> ConsumerEffect:
    """What a publication of this operation does; ``operation`` is empty if it leaves the table as it is."""
    if not operation:
        return ConsumerEffect(consumer.name, "untouched", f"{table} is not changed")
    if consumer.kind == STREAM:
        return judge_stream(consumer, table, operation, stream or StreamState())
    if consumer.kind == WATERMARK:
        return judge_watermark(consumer, scope)
    if consumer.refresh or consumer.verify:
        steps = [*(["refreshed"] if consumer.refresh else []), *(["read back"] if consumer.verify else [])]
        return ConsumerEffect(
            consumer.name, "lags", "may show old rows until it is refreshed", f"is {' and '.join(steps)} after it"
        )
    return ConsumerEffect(
        consumer.name, "reads", "sees the rows when it reads next; neither refresh nor verify is declared for it"
    )


def judge_watermark(consumer: Consumer, scope: str, value: str | None = None) -> ConsumerEffect:
    """What a publication does to an incremental job; ``scope`` is what it has read of it, if its mark is known."""
    how = "its rerun command gets them" if consumer.rerun else "its watermark is moved back to before the first of them"
    known = f": its watermark is {value}" if value is not None else ", as far as it has read them"
    return ConsumerEffect(consumer.name, "misses", f"does not read {scope} again{known}", f"{how} after it")


def judge_stream(consumer: Consumer, table: str, operation: str, state: StreamState) -> ConsumerEffect:
    """What a publication does to a stream: it reads an append, and stops at others unless an option lets it pass."""
    name = consumer.name
    if operation == APPEND:
        return ConsumerEffect(name, "reads", "an append reaches a stream as new rows")
    stops = (
        f"stops at the {operation} snapshot, and leaves the appends before it unread; with Trigger.AvailableNow it "
        "fails on every later start too"
    )
    if state.checkpoint is None:
        problem = state.problem or "no checkpoint is declared for it"
        return _judge_unknown(consumer, operation, stops, problem)
    try:
        position = find_position(state.checkpoint, table, state.line)
        if consumer.on_replace == REWIND:
            require_stateless(state.checkpoint)
    except EngineError as error:
        return _judge_unknown(consumer, operation, stops, error.message)
    if consumer.on_replace == SKIP:
        return _judge_skip(consumer, operation, state.checkpoint, position, state.line)
    waiting = _describe_waiting(state.checkpoint, position, state.line)
    if consumer.on_replace == REWIND:
        repair = "Errata prepares a repaired copy of its checkpoint; a person stops the reader and starts it there"
        return ConsumerEffect(name, "stops", f"{stops}; {waiting}", repair, "warn")
    return ConsumerEffect(name, "stops", f"{stops}; {waiting}", _ask_to_stop(name), "warn")


def _ask_to_stop(name: str) -> str:
    return f"stop it before the publication, which waits for: errata consumers confirm RUN {name}"


def _judge_unknown(consumer: Consumer, operation: str, stops: str, problem: str) -> ConsumerEffect:
    """A stream whose position is not known: what it is declared to do is all there is."""
    match consumer.on_replace:
        case "skip":
            why = f"passes the {operation} snapshot only if its option {OPTIONS.get(operation, '')} is set; {problem}"
            return ConsumerEffect(consumer.name, "unknown", why, level="warn")
        case "rewind":
            repair = "no repaired copy can be made of it; correct what is wrong, or declare on_replace: stop"
            return ConsumerEffect(consumer.name, "stops", f"{stops}; {problem}", repair, "refuse")
        case _:
            return ConsumerEffect(consumer.name, "stops", f"{stops}; {problem}", _ask_to_stop(consumer.name), "warn")


def _judge_skip(
    consumer: Consumer,
    operation: str,
    checkpoint: Checkpoint,
    position: StreamPosition,
    line: Sequence[MainSnapshot],
) -> ConsumerEffect:
    option = OPTIONS.get(operation, "")
    keeps = "it keeps the rows that it read before; what it wrote from them has to be replaced"
    if passed := proves_option(checkpoint, position, line, operation):
        why = f"has passed {operation} snapshot {passed} before, so that its option {option} is set; {keeps}"
        return ConsumerEffect(consumer.name, "passes", why)
    other = "" if operation == OVERWRITE else f", which is not the option that passes an {OVERWRITE}"
    why = (
        f"passes only if its option {option} is set{other}, as on_replace: skip says; it has passed no {operation} "
        f"snapshot yet, so that nothing proves it; {keeps}"
    )
    return ConsumerEffect(consumer.name, "passes", why, level="warn")


def _describe_waiting(checkpoint: Checkpoint, position: StreamPosition, line: Sequence[MainSnapshot]) -> str:
    """Where the reader is now, and what should happen before the publication."""
    ahead = list_blockers(line[position.at + 1 :])
    if ahead:
        return f"it is stopped already, by {ahead[0].operation} snapshot {ahead[0].snapshot_id}"
    unread = list_unread(position, line)
    waiting = f"{plural(len(unread), 'append')} unread: let it read them first" if unread else "it has read everything"
    told = f"it is at snapshot {position.offset.snapshot_id}, {waiting}"
    past = fails_when_available_now(checkpoint, position, line)
    late = f"; with Trigger.AvailableNow it fails today, on snapshot {past.snapshot_id}" if past else ""
    return f"{told}{late}"


def find_operation(*, removes: bool, adds: bool) -> str:
    """The operation that Iceberg records for a commit.

    >>> [find_operation(removes=removes, adds=adds) for removes, adds in ((1, 1), (0, 1), (1, 0))]
    ['overwrite', 'append', 'delete']
    """
    if not removes:
        return APPEND
    return OVERWRITE if adds else DELETE


def describe_repair(name: str, run_id: str, step: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person does with a repaired copy, in order; each line is one thing to do."""
    confirm = f"errata consumers confirm {run_id} {name}"
    start = f"start it with checkpointLocation {step['copy']}"
    if step["kind"] != "jump":
        what = (
            "does the batch that was begun" if step["kind"] == "finish" else "reads the appends before the publication"
        )
        return (
            f"stop {name}",
            f"{start}: it {what} (batch {step['batch']}) and then fails on the publication again",
            confirm,
            "follow the next steps, which it shows",
        )
    handed = step["handover"]
    return (
        f"stop {name}",
        f"replace the partitions that it does not see in what it writes: {handed['sql']}",
        f"{start}, and let it read at least one batch",
        confirm,
        f"set its checkpoint in errata.yaml to {step['copy']}; the old one stays as it is",
    )


def find_start_problem(step: Mapping[str, Any], source: Checkpoint, copy: Checkpoint) -> str:
    """Why a reader has not been moved to a copy as it should; empty if it has."""
    if source.digest != step["digest"]:
        return (
            f"{source.location} has changed since it was copied, so that a reader still uses it; what it has read "
            "since would be read again"
        )
    last = copy.last
    done = last is not None and (last.n > step["batch"] or (last.n == step["batch"] and last.is_committed))
    if not done:
        return f"nothing shows that the reader was started on {copy.location}: batch {step['batch']} is not done there"
    return ""
