"""Ports for measuring a candidate, and the values passed through them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from errata.canonical import canonical_bytes

if TYPE_CHECKING:
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
LISTED = "__errata_listed"
"""Column of a scan with ``subjects``: whether the subject of a row is on the list of erased subjects."""


def input_scope(name: str) -> str:
    """Scope name of an input's measurements."""
    return f"input:{name}"


def group_measure(name: str, values: Sequence[str | None]) -> str:
    """Measurement name of one group: the rule's measurement and the group's values as a canonical JSON list."""
    return f"{name} {canonical_bytes(list(values)).decode()}"


def group_count_measure(rule: str) -> str:
    """Measurement name of the number of groups a rule has in a partition, so that a lost group is noticed."""
    return f"groups.{rule}"


def taken_out_measure(action: str, reason: str) -> str:
    """Measurement name of input rows that the transform did not see; ``action`` is quarantine or suppress."""
    return f"rows.{action} {canonical_bytes([reason]).decode()}"


MAX_CATEGORIES = 1_000
"""Most values of a column in one partition whose shares are measured."""


def encode_shares(counts: Mapping[str | None, int]) -> str | None:
    """Rows of each value of a column, as the text of a measurement; None if there are too many values.

    >>> encode_shares({"EUR": 3, None: 1})
    '[[null,1],["EUR",3]]'
    """
    if len(counts) > MAX_CATEGORIES:
        return None
    ordered = sorted(counts.items(), key=lambda item: (item[0] is not None, item[0] or ""))
    return canonical_bytes([list(item) for item in ordered]).decode()


def decode_shares(text: str) -> dict[str | None, int]:
    """Rows of each value, read back."""
    return {value: int(rows) for value, rows in json.loads(text)}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number of one partition, as text so that no digit is lost; None is NULL. ``exact`` is false for estimates."""

    scope: str  # candidate | prior | control | input:<name>
    partition: str
    name: str
    value: str | None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class ContentDigest:
    """Digest of a partition's rows as a multiset: row count and two sums of 64-bit row hashes (decimals as text)."""

    rows: int
    a: str
    b: str

    @property
    def text(self) -> str:
        """The digest in one text, to compare and to store."""
        return f"{self.rows}:{self.a}:{self.b}"


@dataclass(frozen=True, slots=True)
class GroupedTotal:
    """One side of a reconciliation: the aggregate, the count of its rows, and the grouping keys."""

    rule: str
    name: str  # of the measurement, without the group's values
    aggregate: str
    rows: str
    keys: tuple[str, ...]
    per_partition: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """Counts rows whose key contains no NULL and is not among the keys of an input."""

    columns: tuple[str, ...]
    input: str
    keys: tuple[str, ...]  # the input's columns, in the same order


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything measured on one table, by measurement name; ``content`` lists the columns to checksum.

    ``unique`` counts rows beyond the first of each key within a partition; ``unique_in_run`` counts them across all
    partitions and gives one number for the whole run. ``shares`` counts the rows of each value of a column, see
    :func:`encode_shares`.
    """

    scope: str
    aggregates: Mapping[str, str]
    unique: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    content: tuple[str, ...] = ()
    groups: tuple[GroupedTotal, ...] = ()
    partitions: tuple[str, ...] | None = None  # None: those of the run
    unique_in_run: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    shares: Mapping[str, str] = field(default_factory=dict)  # column whose values are counted
    estimated: frozenset[str] = frozenset()  # aggregates that are not exact, such as quantiles
    subjects: tuple[str, ...] = ()  # columns of ids; aggregates may ask for LISTED then

    @property
    def counts_rows_only(self) -> bool:
        """Whether table metadata may answer it."""
        more = self.unique or self.unique_in_run or self.lookups or self.content or self.groups or self.shares
        return set(self.aggregates) == {ROW_COUNT} and not more


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """One scan per table. Every named measurement is taken for every partition of the run, including empty ones."""

    scans: tuple[Scan, ...]


class Measurer(Protocol):
    """Takes measurements of pinned snapshots. Every method only reads and is safe to repeat."""

    def measure(
        self,
        manifest: Manifest,
        plan: MeasurePlan,
        *,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        rebased: Sequence[Rebase] = (),
    ) -> tuple[Measurement, ...]:
        """Run the plan; the result has every planned name for every partition of the manifest.

        Inputs are read as the manifest pins them, those of ``rebased`` partitions as the rebase pins them.

        A prior of None (the table had no snapshot) skips the prior scan. Raises ``UsageError`` when an expression does
        not fit the table, ``RunExpired`` when a pinned snapshot is gone, ``SourceChanged`` when a pinned file is gone,
        and ``EngineError`` for transient errors.
        """

    def checksums(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, ContentDigest]:
        """Content digests of these partitions over these columns; an empty partition has zero rows and zero sums."""

    def filled(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """Partition → the columns, of those given with their default as text, that hold any other value."""

    def diff(
        self,
        manifest: Manifest,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        partitions: Sequence[str],
        sample: int,
        measurements: Sequence[Measurement] = (),
    ) -> Diff:
        """Compare the candidate with the prior output.

        Candidate checksums among ``measurements`` save one of the two scans that find the partitions that differ.
        """
