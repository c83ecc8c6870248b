"""The keys of a product's target, transform and inputs. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from errata.project.files.section import FileModel
from errata.project.yaml.scalars import (
    Amount,
    Call,
    Column,
    ColumnType,
    Duration,
    Json,
    Line,
    ScalarText,
    Slug,
    SourceType,
    TableName,
    Title,
    YesNo,
)


class PartitionFile(FileModel):
    """The partition column of the target and its grain."""

    column: Column
    grain: Literal["hour", "day", "month", "year", "value"]


class TargetFile(FileModel):
    """The governed table."""

    table: TableName
    partition: PartitionFile
    key: list[Column] = []
    subjects: list[Column] = Field(
        default=[], description="Columns that identify the data subject. Rows of erased subjects are rejected."
    )
    add_columns: dict[Column, ColumnType] = Field(
        default={}, description="New output columns with their Iceberg types, visible with the publication."
    )


class TransformFile(FileModel):
    """The function that computes the product."""

    call: Call
    version: ScalarText
    config: dict[str, Json] = {}


class EraFile(FileModel):
    """A span of partitions, or a set of files, in which a source had one schema, and how to adapt it."""

    name: Slug | None = None
    from_: ScalarText | None = Field(default=None, alias="from", description="First partition of the era.")
    until: ScalarText | None = Field(default=None, description="Last partition of the era, included.")
    has: list[Line] = Field(default=[], description="Columns that files of this era have.")
    lacks: list[Line] = Field(default=[], description="Columns that files of this era do not have.")
    rename: dict[Line, Column] = Field(default={}, description="Source column: declared column.")
    cast: dict[Column, SourceType] = Field(
        default={}, description="Declared column: type. Rows whose value cannot be cast are quarantined."
    )
    default: dict[Column, ScalarText | None] = Field(default={}, description="Values of missing columns.")
    drop: list[Line] = Field(default=[], description="Source columns to ignore.")


class RowRuleFile(FileModel):
    """Rows for which the expression is true are removed before the transform sees them."""

    name: Title
    expression: Line
    action: Literal["quarantine", "suppress"]


class RowLimitsFile(FileModel):
    """How many rows of a partition, and of the run, may be quarantined."""

    warn: Amount | None = None
    block: Amount | None = None


class InputFile(FileModel):
    """What the transform reads: an Iceberg table, files with {partition} in the pattern, or its own earlier output."""

    table: TableName | None = None
    files: Line | None = None
    own: YesNo = Field(default=False, description="Read the product's own earlier partitions; needs lookback.")
    partition: Column | None = None
    lookback: Duration = "0d"
    lookahead: Duration = "0d"
    reference: Literal["as_recorded", "corrected_truth", "current", "as_decided"] | None = None
    version: Line | None = Field(default=None, description="Tag of the table (default: its newest snapshot).")
    columns: dict[Column, SourceType] = Field(
        default={},
        description="Columns that the transform sees. A missing column needs a rename or an explicit default.",
    )
    eras: list[EraFile] = []
    rows: list[RowRuleFile] = []
    quarantine: RowLimitsFile | None = None
