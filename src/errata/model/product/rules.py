"""Rules that a candidate is judged by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

INEXACT = ("float", "double", "decimal")
"""Column types that may have a tolerance in a diff."""


PII_KINDS = ("email", "phone", "iban", "card", "ssn", "ipv4", "ipv6")
"""Kinds of personal data that a check can look for."""


class Metric(StrEnum):
    """Library metrics of the Open Data Contract Standard, and further metrics of checks."""

    ROW_COUNT = "rowCount"
    NULL_VALUES = "nullValues"
    MISSING_VALUES = "missingValues"
    INVALID_VALUES = "invalidValues"
    DUPLICATE_VALUES = "duplicateValues"
    EXPRESSION = "expression"
    FRESHNESS = "freshness"
    TIMESTAMP_BOUNDS = "timestampBounds"
    MISSING_REFERENCES = "missingReferences"
    PII_VALUES = "piiValues"


@dataclass(frozen=True, slots=True)
class Threshold:
    """``mustBe…`` of a check: an operator of the standard and its operand (a decimal as text, or a pair)."""

    operator: str  # mustBe, mustNotBe, mustBeGreaterThan, … mustNotBeBetween
    operand: str
    upper: str | None = None


@dataclass(frozen=True, slots=True)
class References:
    """Where a check looks up keys: columns of a pinned input."""

    input: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One data-quality rule, evaluated per partition or over the run."""

    name: str
    metric: Metric
    threshold: Threshold
    columns: tuple[str, ...] = ()
    expression: str | None = None
    valid_values: tuple[str, ...] = ()
    pattern: str | None = None
    missing_values: tuple[str, ...] = ()
    unit: str = "rows"  # rows | percent; for an age: minutes | hours | days
    severity: str = "block"  # warn | block
    per: str = "partition"  # partition | run
    minimum: str | None = None  # both ends are included
    maximum: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    before: str = "0s"  # how far timestamps may lie outside their partition
    after: str = "0s"
    references: References | None = None
    kinds: tuple[str, ...] = ()  # of personal data
    must_hold: bool = False  # the expression states what is right instead of what is wrong


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Grouping of a reconciliation: a name, and its expression on each side."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An aggregate of an input that must equal an aggregate of the output, in every group if there are groups."""

    name: str
    input: str
    source: str
    target: str
    tolerance: str = "0"  # absolute decimal, or "0.5%"
    by: tuple[GroupKey, ...] = ()
    where: str | None = None  # row condition on both sides
    source_where: str | None = None
    target_where: str | None = None
    per: str = "partition"  # partition | run


@dataclass(frozen=True, slots=True)
class Comparison:
    """An aggregate of the candidate compared with the same aggregate of the current output."""

    name: str
    metric: str
    warn: str | None = None  # "5%" or an absolute decimal
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An aggregate of a partition compared with comparable partitions that the run does not touch."""

    name: str
    metric: str
    reach: int = 4  # weeks around a day or hour, years around a month
    least: int = 3  # fewer controls give a warning
    warn: str | None = "3.5"  # robust z-scores
    block: str | None = "8"
