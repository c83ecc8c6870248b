"""Rules that a candidate is judged by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf
from errata.model.file_values import (
    Amount,
    Column,
    Count,
    DecimalText,
    Expression,
    InputName,
    LengthText,
    Line,
    ScalarText,
    Title,
    YesNo,
)

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
    """Columns of a pinned input that must contain the keys."""

    input: InputName
    columns: Annotated[tuple[Column, ...], AtLeast(1)]


@dataclass(frozen=True, slots=True)
class Check:
    """A data-quality rule with keys of the Open Data Contract Standard, judged per partition or over the run."""

    name: Annotated[Title, Key(needed=False)]
    metric: Annotated[Metric, NOT_A_KEY]
    threshold: Annotated[Threshold, NOT_A_KEY]
    columns: Annotated[tuple[Column, ...], AtLeast(1)] = ()
    expression: Annotated[Expression | None, Key("Row condition; rows for which it is true are counted.")] = None
    valid_values: Annotated[tuple[ScalarText, ...], AtLeast(1), Key(path="validValues")] = ()
    pattern: Annotated[Line | None, Key("Java regular expression that must match part of the value.")] = None
    missing_values: Annotated[tuple[ScalarText, ...], AtLeast(1), Key(path="missingValues")] = ()
    unit: Annotated[
        str,
        OneOf("rows", "percent", "minutes", "hours", "days"),
        Key("rows or percent of rows; for freshness minutes, hours or days."),
    ] = "rows"
    severity: Annotated[str, OneOf("warn", "block")] = "block"
    per: Annotated[str, OneOf("partition", "run"), Key("Judged for each partition, or once.")] = "partition"
    minimum: Annotated[ScalarText | None, Key("Smallest valid value.")] = None
    maximum: Annotated[ScalarText | None, Key("Largest valid value.")] = None
    min_length: Annotated[Count | None, Key("Minimum number of characters.", "minLength")] = None
    max_length: Annotated[Count | None, Key("Maximum number of characters.", "maxLength")] = None
    before: Annotated[LengthText, Key("How long before its partition a timestamp may be.")] = "0s"
    after: Annotated[LengthText, Key("How long after its partition a timestamp may be.")] = "0s"
    references: Annotated[References | None, Key("Input that must contain the keys.")] = None
    kinds: Annotated[
        tuple[Annotated[str, OneOf(*PII_KINDS)], ...],
        AtLeast(1),
        Key("Kinds of personal data to look for (default: all)."),
    ] = ()
    # the expression states what is right instead of what is wrong
    must_hold: Annotated[bool, NOT_A_KEY] = False


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A grouping expression that differs between the two sides."""

    name: Annotated[str, NOT_A_KEY]
    source: Line
    target: Line


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """An aggregate of an input that must equal an aggregate of the output, per partition or over the run, by group."""

    name: Title
    input: InputName
    source: Line
    target: Line
    tolerance: Amount = "0"
    by: Annotated[tuple[GroupKey, ...], NOT_A_KEY] = ()
    where: Annotated[Line | None, Key("Row condition on both sides.")] = None
    source_where: Annotated[Line | None, Key("Row condition on the input only.")] = None
    target_where: Annotated[Line | None, Key("Row condition on the output only.")] = None
    per: Annotated[str, OneOf("partition", "run")] = "partition"


@dataclass(frozen=True, slots=True)
class Comparison:
    """An aggregate of the candidate, compared with the same of the previous output."""

    name: Annotated[Title, Key(needed=False)]
    metric: Line
    warn: Amount | None = None
    block: Amount | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An aggregate of a partition, compared with the same of comparable partitions outside the run."""

    name: Annotated[Title, Key(needed=False)]
    metric: Line
    reach: Annotated[int, NOT_A_KEY] = 4  # weeks around a day or hour, years around a month
    least: Annotated[Count, Key("Fewer controls are a warning.")] = 3
    warn: str | None = "3.5"  # robust z-scores
    block: str | None = "8"


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the values of a column are distributed, compared with the previous output or with control partitions."""

    name: Annotated[Title, Key(needed=False)]
    column: Column
    quantiles: Annotated[
        tuple[DecimalText, ...], AtLeast(1), Key("Quantiles of a column of numbers, such as 0.5 and 0.95.")
    ] = ()
    shares: Annotated[YesNo, Key("Compare the share of rows that each value has.")] = False
    against: Annotated[
        str, OneOf("prior", "control"), Key("The previous output, or comparable partitions outside the run.")
    ] = "prior"
    reach: Annotated[int, NOT_A_KEY] = 4  # weeks around a day or hour, years around a month
    least: Annotated[Count, Key("against control: fewer controls are a warning.")] = 3
    warn: Annotated[Amount | None, Key("Largest change of a quantile, or percentage points of a share.")] = None
    block: Annotated[Amount | None, Key("Largest change of a quantile, or percentage points of a share.")] = None
