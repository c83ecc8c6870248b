"""Ports for measuring a candidate, and the values that cross that border. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from errata.canonical import canonical_bytes
from errata.model.diff import (
    Diff,
)
from errata.model.manifest import Manifest, TargetPin
from errata.model.rebase import Rebase

CANDIDATE = "candidate"
PRIOR = "prior"
CONTROL = "control"
ROW_COUNT = "rowCount"
ROWS_IN = "rows.in"
ROWS_USED = "rows.used"
CONTENT_A = "content.a"
CONTENT_B = "content.b"


def input_scope(name: str) -> str:
    """The scope of an input's measurements."""
    return f"input:{name}"


def group_measure(name: str, values: Sequence[str | None]) -> str:
    """The measurement of one group of what has groups: its name and the group's values as a canonical JSON list."""
    return f"{name} {canonical_bytes(list(values)).decode()}"


def group_count_measure(rule: str) -> str:
    """How many groups a rule has in a partition, so that a group that got lost is missed."""
    return f"groups.{rule}"


def taken_out_measure(action: str, reason: str) -> str:
    """The measurement of rows of an input that the transform did not see; ``action`` is quarantine or suppress."""
    return f"rows.{action} {canonical_bytes([reason]).decode()}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number of one partition, as text; NULL is None. ``exact`` is false for floating-point results."""

    scope: str  # candidate | prior | control | input:<name>
    partition: str
    name: str
    value: str | None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class ContentDigest:
    """What a partition holds, as a multiset: the row count and two sums of 64-bit row hashes (decimals as text)."""

    rows: int
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class GroupedTotal:
    """One side of a balance in groups: its aggregate, the rows that count, and what they are grouped by."""

    rule: str
    name: str  # of the measurement, before the group's values
    aggregate: str
    rows: str
    keys: tuple[str, ...]
    per_partition: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows whose key, where there is no NULL in it, is not among the keys of an input."""

    columns: tuple[str, ...]
    input: str
    keys: tuple[str, ...]  # the input's columns, in the same order


@dataclass(frozen=True, slots=True)
class Scan:
    """All that is measured on one table, by measurement name; ``content`` are the columns to checksum.

    ``unique`` counts rows beyond the first of each key within a partition, ``unique_in_run`` over all of them, which is
    one number of the run as a whole.
    """

    scope: str
    aggregates: Mapping[str, str]
    unique: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    content: tuple[str, ...] = ()
    groups: tuple[GroupedTotal, ...] = ()
    partitions: tuple[str, ...] | None = None  # None: those of the run
    unique_in_run: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """One scan per table; what the plan names is measured for every partition of the run, also for empty ones."""

    scans: tuple[Scan, ...]


class Measurer(Protocol):
    """Numbers from pinned snapshots. Everything here only reads and may be repeated at will."""

    def measure(
        self,
        manifest: Manifest,
        plan: MeasurePlan,
        *,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        rebased: Sequence[Rebase] = (),
    ) -> tuple[Measurement, ...]:
        """Run the plan; every planned name is there for every partition of the manifest.

        Inputs are read as the manifest pins them, those of ``rebased`` partitions as they were pinned again.

        A prior of None (the table had no snapshot) leaves the prior scan out. Raises ``UsageError`` when an
        expression does not fit the table, ``RunExpired`` when a pinned snapshot is gone, ``SourceChanged`` when a
        pinned file is, and ``EngineError`` for what may pass.
        """

    def checksums(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, ContentDigest]:
        """Content digests of these partitions over these columns; an empty partition has zero rows and zero sums."""

    def filled(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """Partition → those of these columns that hold anything but their default, which is given as text."""

    def diff(
        self,
        manifest: Manifest,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        partitions: Sequence[str],
        sample: int,
        measurements: Sequence[Measurement] = (),
    ) -> Diff:
        """Old against new. Checksums of the candidate among ``measurements`` spare one of two scans that find where."""
