"""Resolve the snapshot at which each partition reads a reference table. Pure.

``as_recorded`` is the snapshot that main held when the partition ended: the newest one committed before that instant.
``as_decided`` is the snapshot that the accepted run of the partition read. A partition without a snapshot, or whose
snapshot has expired, is unresolved and refuses the plan; no other snapshot takes its place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from errata.model.manifest import InputPin, SnapshotSpan
from errata.model.partition import NULL, Grain, end_of, sort_oldest_first
from errata.model.product import READ_AT_ITS_TIME
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.ports.tables import InputState, MainEntry, PartitionSize
from errata.text.numbers import format_moment, plural

MAX_SNAPSHOTS = 366
"""Most snapshots of one input in a plan: each one gets a tag, and chunks of its own."""


@dataclass(frozen=True, slots=True)
class ResolvedSnapshots:
    """Partition → its snapshot, or why it has none."""

    snapshot_of: Mapping[str, str] = field(default_factory=dict)
    unresolved: Mapping[str, str] = field(default_factory=dict)

    def group(self) -> dict[str, tuple[str, ...]]:
        """Snapshot → its partitions, in the order in which they come."""
        found: dict[str, list[str]] = {}
        for name, snapshot in self.snapshot_of.items():
            found.setdefault(snapshot, []).append(name)
        return {snapshot: tuple(names) for snapshot, names in found.items()}


@dataclass(frozen=True, slots=True)
class DecidedPin:
    """What the accepted run of a partition read of an input; None if it did not read this table."""

    run_id: str
    pin: InputPin | None


def find_recorded(grain: Grain, partitions: Sequence[str], log: Sequence[MainEntry]) -> ResolvedSnapshots:
    """The snapshot that main held at the end of each partition; a partition that has not ended reads the newest."""
    times = [entry.at_ms for entry in log]
    since = f"main is known since {_format_ms(times[0])} UTC" if times else "the table has no snapshot"
    found: dict[str, str] = {}
    problems: dict[str, str] = {}
    for name in partitions:
        if name == NULL:
            problems[name] = "the partition of NULL has no end in time"
            continue
        end_ms = int(end_of(grain, name).timestamp() * 1000)
        # a commit at the very end belongs to the next partition
        place = bisect_left(times, end_ms)
        if not place:
            problems[name] = f"nothing of its end is known; {since}"
        elif not log[place - 1].exists:
            problems[name] = "its snapshot has expired"
        else:
            found[name] = log[place - 1].snapshot_id
    return ResolvedSnapshots(found, problems)


def find_decided(
    partitions: Sequence[str], decided: Mapping[str, DecidedPin], table: str, exists: Mapping[str, bool]
) -> ResolvedSnapshots:
    """The snapshot that the accepted run of each partition read; ``exists`` tells which of them are still there."""
    found: dict[str, str] = {}
    problems: dict[str, str] = {}
    for name in partitions:
        one = decided.get(name)
        snapshot = find_read_snapshot(one.pin, name) if one and one.pin else None
        if one is None:
            problems[name] = "no run of this ledger decided it"
        elif snapshot is None:
            problems[name] = f"{one.run_id}, which decided it, did not read a snapshot of {table}"
        elif not exists.get(snapshot):
            problems[name] = f"snapshot {snapshot}, which {one.run_id} read, has expired"
        else:
            found[name] = snapshot
    return ResolvedSnapshots(found, problems)


def find_read_snapshot(pin: InputPin, partition: str) -> str | None:
    """The snapshot at which a run read an input for one of its partitions."""
    own = (span.snapshot_id for span in pin.snapshots if partition in span.partitions)
    return next(own, pin.snapshot_id)


def merge_states(newest: InputState, by_snapshot: Mapping[str, InputState], found: ResolvedSnapshots) -> InputState:
    """One state of an input that is read at several snapshots; each partition has the size it has at its own.

    ``newest`` is the state at the newest of them; where the input is read whole, its size is the size of the input.
    """
    sizes: dict[str, PartitionSize] = {}
    for state in by_snapshot.values():
        sizes = {**state.partitions, **sizes}
    # look-back that several snapshots hold is counted once; a partition in scope is the one that its run reads
    for name, snapshot in found.snapshot_of.items() if by_snapshot else ():
        sizes.pop(name, None)
        if name in by_snapshot[snapshot].partitions:
            sizes[name] = by_snapshot[snapshot].partitions[name]
    problem = next((state.problem for state in (newest, *by_snapshot.values()) if state.problem), None)
    return replace(
        newest, partitions=sizes, snapshot_of=found.snapshot_of, unresolved=found.unresolved, problem=problem
    )


def build_spans(grain: Grain, facts: InputState) -> tuple[SnapshotSpan, ...]:
    """The snapshots of an input by partition; empty if all partitions read the same one."""
    groups = ResolvedSnapshots(facts.snapshot_of).group()
    if len(groups) < 2:
        return ()
    spans = [SnapshotSpan(snapshot, sort_oldest_first(grain, names)) for snapshot, names in groups.items()]
    return tuple(sorted(spans, key=lambda span: span.partitions[0]))


def check_references(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse partitions whose snapshot of a reference is not there, and plans that need too many snapshots."""
    for source in world.product.inputs:
        facts = world.inputs.get(source.name)
        if facts is None or source.reference not in READ_AT_ITS_TIME:
            continue
        what = f"{source.name} ({source.reference})"
        if facts.unresolved:
            yield _refuse_unresolved(world, what, facts)
            continue
        count = len(set(facts.snapshot_of.values()))
        if count > MAX_SNAPSHOTS:
            text = f"{what}: {count:,} snapshots of {facts.location}; at most {MAX_SNAPSHOTS} can be kept for one run"
            look = ("plan fewer partitions at a time",)
            yield GuardrailResult("reference", "refuse", text, final=True, look=look)
        else:
            text = f"{what}: {plural(count, 'snapshot')} of {facts.location}, by partition"
            yield GuardrailResult("reference", "ok", text)


def _refuse_unresolved(world: PlanContext, what: str, facts: InputState) -> GuardrailResult:
    by_reason: dict[str, list[str]] = {}
    for name, why in facts.unresolved.items():
        by_reason.setdefault(why, []).append(name)
    told = "; ".join(f"{world.folded(names)}: {why}" for why, names in by_reason.items())
    count = f"{len(facts.unresolved):,} of {plural(len(world.partitions), 'partition')}"
    look = (
        f"{facts.location}.snapshots lists what the table still has; in the product file, version: TAG reads a "
        "snapshot that was kept, and reference: current the newest"
    )
    return GuardrailResult(
        "reference", "refuse", f"{what}: no snapshot for {count}: {told}", final=True, look=(look,),
        leave_out=frozenset(facts.unresolved),
    )  # fmt: skip


def _format_ms(at_ms: int) -> str:
    return format_moment(datetime.fromtimestamp(at_ms / 1000, UTC).isoformat())
