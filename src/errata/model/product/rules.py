"""Rules that a candidate is judged by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

INEXACT = ("float", "double", "decimal")
"""Column types that may have a tolerance in a diff."""


PII_KINDS = ("email", "phone", "iban", "card", "ssn", "ipv4", "ipv6")
"""Kinds of personal data that a check can look for."""


class Metric(StrEnum):
    """The library metrics of the Open Data Contract Standard, and what else checks count."""

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
    """``mustBe…`` of a check: an operator name of the standard and its operand (a decimal as text, or a pair)."""

    operator: str  # mustBe, mustNotBe, mustBeGreaterThan, … mustNotBeBetween
    operand: str
    upper: str | None = None


@dataclass(frozen=True, slots=True)
class References:
    """Where the keys that a check looks up must be: columns of an input, as it is pinned."""

    input: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One data-quality rule, judged per partition or over the run."""

    name: str
    metric: Metric
    threshold: Threshold
    columns: tuple[str, ...] = ()
    expression: str | None = None
    valid_values: tuple[str, ...] = ()
    pattern: str | None = None
    missing_values: tuple[str, ...] = ()
    unit: str = "rows"  # rows | percent; of an age minutes | hours | days
    severity: str = "block"  # warn | block
    per: str = "partition"  # partition | run
    minimum: str | None = None  # both ends belong to the range
    maximum: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    before: str = "0s"  # how far timestamps may lie outside their partition
    after: str = "0s"
    references: References | None = None
    kinds: tuple[str, ...] = ()  # of personal data
    must_hold: bool = False  # the expression says what is right instead of what is wrong


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the rows of a balance are grouped by: a name, and the expression that gives it on each side."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An aggregate of an input that must equal an aggregate of the output, in every group where it has groups."""

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
    """An aggregate of the candidate against the same of the output accepted before."""

    name: str
    metric: str
    warn: str | None = None  # "5%" or an absolute decimal
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An aggregate of a partition against the same of comparable partitions that the run does not touch."""

    name: str
    metric: str
    reach: int = 4  # weeks around a day or hour, years around a month
    least: int = 3  # fewer controls are a warning
    warn: str | None = "3.5"  # robust z-scores
    block: str | None = "8"
