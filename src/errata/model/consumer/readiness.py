"""May a partition be read now? Its state, and the snapshot to read, from what the ledger knows. Pure.

The states follow each other: ready, announced, held, publishing, settling, ready. A partition of which nothing is
known was never corrected, and is ready.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from errata.model.consumer.outbox import Effect, ItemState
from errata.model.partition import NULL, Grain, fold_ranges
from errata.model.refs import STEP_DAYS


class ReadyState(StrEnum):
    """What readers may expect of a partition."""

    READY = "ready"
    ANNOUNCED = "announced"  # an approved run will replace it; until then it is as it was
    HELD = "held"  # readers were asked to wait
    PUBLISHING = "publishing"
    SETTLING = "settling"  # published, and what shows it to readers is not up to date yet

    @property
    def can_read(self) -> bool:
        """Whether a reader that asks may continue."""
        return self in (ReadyState.READY, ReadyState.ANNOUNCED)


R = ReadyState
_PRECEDENCE = (R.READY, R.ANNOUNCED, R.SETTLING, R.HELD, R.PUBLISHING)
"""Where several runs have a claim on a partition, the last one of these counts."""

SETTLING_EFFECTS = frozenset({Effect.RECOVER})
"""What has to be paid before a partition is ready. Messages and the other effects never hold it up."""
_UNPAID = frozenset({ItemState.OWED, ItemState.FAILED})


def is_unsettled(effect: Effect, state: ItemState, *, waived_ready: bool = False) -> bool:
    """Whether an item of a publication that landed keeps its partitions from being ready.

    Waiving an item ends its retries, not its cause: the partitions stay unsettled unless the waiver says otherwise.
    """
    return effect in SETTLING_EFFECTS and (state in _UNPAID or (state is ItemState.WAIVED and not waived_ready))


@dataclass(frozen=True, slots=True)
class Claim:
    """A reason why partitions are not simply ready; ``snapshot_id`` is the one to read meanwhile, if it is known."""

    state: ReadyState
    run_id: str
    partitions: tuple[str, ...]
    since: str
    snapshot_id: str | None = None
    is_shared: bool = False  # with other tables: this snapshot is the one that fits theirs
    passes: bool = True  # when its time is over, or what has begun or is owed is done; otherwise people decide


@dataclass(frozen=True, slots=True)
class Landing:
    """A publication or rollback that landed, and the partitions whose content is still the one that it left."""

    run_id: str
    snapshot_id: str
    intended_at: str
    settled_at: str
    partitions: tuple[str, ...]
    recovered_at: str | None = None  # when the last item that kept the partitions from being ready was paid

    def is_contained_in(self, later: Landing) -> bool:
        """Whether what this one left is certainly part of the other's snapshot: it was settled before that began."""
        return _parse(later.intended_at) > _parse(self.settled_at)


@dataclass(frozen=True, slots=True)
class PartitionReadiness:
    """The state of one partition; ``snapshot_id`` None means that main may be read as it is."""

    state: ReadyState
    run_id: str | None  # of the run, or of the campaign whose other tables it waits for
    snapshot_id: str | None
    since: str


@dataclass(frozen=True, slots=True)
class ReadyRange:
    """Neighbouring partitions with the same state; both ends belong to it."""

    first: str
    last: str
    found: PartitionReadiness


def judge_readiness(
    claims: Iterable[Claim], landings: Sequence[Landing], now: datetime
) -> dict[str, PartitionReadiness]:
    """The state of every partition that has a claim or was published; all others are ready.

    ``landings`` are those of the whole table in the order in which they were settled.
    """
    found: dict[str, PartitionReadiness] = {}
    for own in landings:
        since, snapshot = own.recovered_at or own.settled_at, choose_snapshot(own, landings, now)
        ready = PartitionReadiness(R.READY, own.run_id, snapshot, since)
        found |= dict.fromkeys(own.partitions, ready)
    # of two claims of one kind the older one counts: that is since when readers wait, and what they read
    newest_first = sorted(claims, key=lambda one: one.since, reverse=True)
    for claim in sorted(newest_first, key=lambda one: _PRECEDENCE.index(one.state)):
        for name in claim.partitions:
            # nobody has touched an announced partition yet, so it is read like one that is ready
            before = found[name].snapshot_id if name in found else None
            snapshot = before if claim.state is R.ANNOUNCED else claim.snapshot_id or before
            found[name] = PartitionReadiness(claim.state, claim.run_id, snapshot, claim.since)
    for claim in newest_first:
        if claim.is_shared:
            # whatever else has a claim, readers of several tables get snapshots that fit
            found |= {name: replace(found[name], snapshot_id=claim.snapshot_id) for name in claim.partitions}
    return found


def choose_snapshot(own: Landing, landings: Sequence[Landing], now: datetime) -> str | None:
    """The newest snapshot of a publication that certainly contains what ``own`` left.

    One snapshot for as many partitions as possible, so that a reader can read all of them at once. None when it is
    older than the tag that keeps it: what is on main since then is nobody's correction in progress.
    """
    newest = next((one for one in reversed(landings) if own.is_contained_in(one)), own)
    if _parse(newest.settled_at) < now - timedelta(days=STEP_DAYS):
        return None
    return newest.snapshot_id


def fold_readiness(grain: Grain, found: Mapping[str, PartitionReadiness]) -> tuple[ReadyRange, ...]:
    """The states as ranges of neighbouring partitions, oldest first.

    >>> days = {f"2026-01-0{n}": PartitionReadiness(R.HELD, "bf-1", "7", "…") for n in (1, 2, 4)}
    >>> [(one.first, one.last) for one in fold_readiness(Grain.DAY, days)]
    [('2026-01-01', '2026-01-02'), ('2026-01-04', '2026-01-04')]
    """
    alike: dict[PartitionReadiness, list[str]] = {}
    for name, one in found.items():
        alike.setdefault(one, []).append(name)
    ranges = [ReadyRange(first, last, one) for one, names in alike.items() for first, last in fold_ranges(grain, names)]
    return tuple(sorted(ranges, key=lambda one: (one.first != NULL, one.first)))


@dataclass(frozen=True, slots=True)
class ReadyRow:
    """One row of the ready table; a range of partitions of one table."""

    table_name: str
    first_partition: str
    last_partition: str
    run_id: str | None
    snapshot_id: str | None
    state: str
    since: str


def list_ready_rows(table: str, grain: Grain, found: Mapping[str, PartitionReadiness]) -> tuple[ReadyRow, ...]:
    """What the ready table says about a table."""
    return tuple(
        ReadyRow(
            table,
            one.first,
            one.last,
            one.found.run_id,
            one.found.snapshot_id,
            one.found.state.value,
            _normalize(one.found.since),
        )
        for one in fold_readiness(grain, found)
    )


def without_snapshots(found: Mapping[str, PartitionReadiness]) -> dict[str, PartitionReadiness]:
    """The same for a product whose readers see a view, which has no snapshots."""
    return {name: replace(one, snapshot_id=None) for name, one in found.items()}


def are_readable(found: Mapping[str, PartitionReadiness], wanted: Collection[str] | None = None) -> bool:
    """Whether all wanted partitions (default: all) may be read."""
    return all(one.state.can_read for name, one in found.items() if wanted is None or name in wanted)


def _normalize(at: str) -> str:
    return _parse(at).astimezone(UTC).isoformat()


def _parse(at: str) -> datetime:
    return datetime.fromisoformat(at)
