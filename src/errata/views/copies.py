"""Copies of a product in warehouses: what is delivered, what they hold, and how it compares with the lake. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CopyLine:
    """What a run owes one copy, and what became of it."""

    warehouse: str
    table: str
    state: str  # delivered | pending | failed | waived
    partitions: tuple[str, ...]  # that the run has published or rolled back
    delivered_at: str | None  # None: not all of them are there
    required: bool = False
    missing: tuple[str, ...] = ()  # partitions that are not there
    error: str | None = None  # of the last attempt
    code: str | None = None  # of that error
    waived_by: str | None = None
    waived_why: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionCopy:
    """Whether a copy got what is accepted for one partition."""

    warehouse: str
    table: str
    state: str  # delivered | pending | failed | waived
    run_id: str  # whose publication or rollback was to be delivered last
    at: str | None  # when it was delivered or given up
    error: str | None = None  # of the last attempt
    waived_by: str | None = None
    waived_why: str | None = None


@dataclass(frozen=True, slots=True)
class BaselinePartition:
    """A partition on both sides."""

    partition: str
    lake_rows: int
    copy_rows: int
    is_same: bool  # by number and checksum
    is_known: bool = False  # it holds what Errata left there


@dataclass(frozen=True, slots=True)
class BaselineCopy:
    """What one copy holds, compared with main."""

    warehouse: str
    table: str
    partitions: tuple[BaselinePartition, ...]

    @property
    def differing(self) -> tuple[str, ...]:
        """Partitions whose rows are others than those of main."""
        return tuple(one.partition for one in self.partitions if not one.is_same)


@dataclass(frozen=True, slots=True)
class BaselineView:
    """Copies of a product, with the differences that a person accepts, or would accept."""

    product: str
    grain: str
    snapshot_id: str | None  # of main
    copies: tuple[BaselineCopy, ...]
    is_accepted: bool  # False: shown only, because no reason was given
    reason: str = ""
    retried: tuple[str, ...] = ()  # failed items that are tried again
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DifferingPartition:
    """A partition whose rows in a copy are not those of the lake."""

    partition: str
    lake_rows: int
    copy_rows: int
    why: str  # changed: somebody else wrote the copy | undelivered: what is accepted has not reached it


@dataclass(frozen=True, slots=True)
class CheckedCopy:
    """One copy, compared with the lake at one snapshot."""

    warehouse: str
    table: str
    checked_count: int = 0  # partitions that were compared
    differing: tuple[DifferingPartition, ...] = ()
    moved_on: tuple[str, ...] = ()  # the lake holds other rows than were delivered; not compared
    baseline: tuple[str, ...] = ()  # only a baseline covers them, which accepted other rows; not compared
    unknown: tuple[str, ...] = ()  # asked for, but neither a delivery nor a baseline covers them
    waived_by: str | None = None  # who decided to leave something of it undelivered
    error: str | None = None  # why it could not be compared


@dataclass(frozen=True, slots=True)
class CopiesCheckView:
    """The copies of a product, compared with the lake."""

    product: str
    grain: str
    snapshot_id: str | None  # of main; None: the table has none
    copies: tuple[CheckedCopy, ...]
    ok: bool  # every copy was compared, and none differs
    next: tuple[str, ...] = ()
