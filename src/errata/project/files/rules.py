"""The keys of the rules for a candidate. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from errata.model.product import PII_KINDS
from errata.project.files.section import FileModel, detect_form
from errata.project.yaml.scalars import (
    Amount,
    Column,
    Count,
    DecimalText,
    Expression,
    Identifier,
    InputName,
    LengthText,
    Line,
    ScalarText,
    Title,
)

THRESHOLDS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)


_Pair = Annotated[list[DecimalText], Field(min_length=2, max_length=2)]


_MetricName = Literal[
    "rowCount",
    "nullValues",
    "missingValues",
    "invalidValues",
    "duplicateValues",
    "expression",
    "freshness",
    "timestampBounds",
    "missingReferences",
    "piiValues",
    "not_null",
    "unique",
    "accepted_values",
    "relationships",
    "unique_combination_of_columns",
    "accepted_range",
    "expression_is_true",
]


_PiiKind = Literal[PII_KINDS]  # type: ignore[valid-type]


class ReferencesFile(FileModel):
    """Columns of a pinned input that must contain the keys."""

    input: InputName
    columns: Annotated[list[Column], Field(min_length=1)]


class CheckFile(FileModel):
    """A data-quality rule with keys of the Open Data Contract Standard, judged per partition or over the run."""

    name: Title | None = None
    metric: _MetricName | None = None
    column: Column | None = None
    columns: Annotated[list[Column], Field(min_length=1)] | None = None
    expression: Expression | None = Field(
        default=None, description="Row condition; rows for which it is true are counted."
    )
    valid_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="validValues")
    pattern: Line | None = Field(default=None, description="Java regular expression that must match part of the value.")
    minimum: ScalarText | None = Field(default=None, description="Smallest valid value.")
    maximum: ScalarText | None = Field(default=None, description="Largest valid value.")
    min_length: Count | None = Field(default=None, alias="minLength", description="Minimum number of characters.")
    max_length: Count | None = Field(default=None, alias="maxLength", description="Maximum number of characters.")
    missing_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="missingValues")
    before: LengthText | None = Field(default=None, description="How long before its partition a timestamp may be.")
    after: LengthText | None = Field(default=None, description="How long after its partition a timestamp may be.")
    references: ReferencesFile | None = Field(default=None, description="Input that must contain the keys.")
    kinds: Annotated[list[_PiiKind], Field(min_length=1)] | None = Field(
        default=None, description="Kinds of personal data to look for (default: all)."
    )
    per: Literal["partition", "run"] = Field(default="partition", description="Judged for each partition, or once.")
    unit: Literal["rows", "percent", "minutes", "hours", "days"] | None = Field(
        default=None, description="rows or percent of rows; for freshness minutes, hours or days."
    )
    severity: Literal["warn", "block"] = "block"
    must_be: DecimalText | None = Field(default=None, alias="mustBe")
    must_not_be: DecimalText | None = Field(default=None, alias="mustNotBe")
    must_be_greater_than: DecimalText | None = Field(default=None, alias="mustBeGreaterThan")
    must_be_greater_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeGreaterOrEqualTo")
    must_be_less_than: DecimalText | None = Field(default=None, alias="mustBeLessThan")
    must_be_less_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeLessOrEqualTo")
    must_be_between: _Pair | None = Field(default=None, alias="mustBeBetween")
    must_not_be_between: _Pair | None = Field(default=None, alias="mustNotBeBetween")


class GroupKeyFile(FileModel):
    """A grouping expression that differs between the two sides."""

    source: Line
    target: Line


def _detect_list_form(value: Any) -> str:
    return "<list>" if isinstance(value, list) else "<mapping>"


_GroupKey = Annotated[
    Annotated[GroupKeyFile, Tag("<many>")] | Annotated[Line, Tag("<one>")],
    Discriminator(detect_form),
]


GroupBy = Annotated[
    Annotated[list[Column], Tag("<list>"), Field(min_length=1)]
    | Annotated[dict[Identifier, _GroupKey], Tag("<mapping>"), Field(min_length=1)],
    Discriminator(_detect_list_form),
]


class ReconcileFile(FileModel):
    """An aggregate of an input that must equal an aggregate of the output, per partition or over the run, by group."""

    name: Title
    input: InputName
    source: Line
    target: Line
    tolerance: Amount = "0"
    by: GroupBy | None = Field(
        default=None, description="Columns to group by, or names with one expression, or with one per side."
    )
    where: Line | None = Field(default=None, description="Row condition on both sides.")
    source_where: Line | None = Field(default=None, description="Row condition on the input only.")
    target_where: Line | None = Field(default=None, description="Row condition on the output only.")
    per: Literal["partition", "run"] = "partition"


class CompareFile(FileModel):
    """An aggregate of the candidate, compared with the same of the previous output."""

    name: Title | None = None
    metric: Line
    warn: Amount | None = None
    block: Amount | None = None


class ControlFile(FileModel):
    """An aggregate of a partition, compared with the same of comparable partitions outside the run."""

    name: Title | None = None
    metric: Line
    weeks: Count | None = Field(default=None, description="Day or hour: weeks before and after (default: 4).")
    years: Count | None = Field(default=None, description="Month: years before and after (default: 4).")
    least: Count = Field(default=3, description="Fewer controls are a warning.")
    warn: DecimalText | None = Field(default=None, description="Robust z-score (default without warn and block: 3.5).")
    block: DecimalText | None = Field(default=None, description="Robust z-score (default without warn and block: 8).")
