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
    """The partition column of the target and how wide a partition is."""

    column: Column
    grain: Literal["hour", "day", "month", "year", "value"]


class TargetFile(FileModel):
    """The governed table."""

    table: TableName
    partition: PartitionFile
    key: list[Column] = []
    subjects: list[Column] = Field(
        default=[], description="Columns with ids of those whom rows are about; erased ones stay away."
    )
    add_columns: dict[Column, ColumnType] = Field(
        default={}, description="New output columns with their Iceberg types; readers see them with the publication."
    )


class TransformFile(FileModel):
    """The function that computes the product."""

    call: Call
    version: ScalarText
    config: dict[str, Json] = {}


class EraFile(FileModel):
    """A span in which a source had one shape, by partitions or by what its files hold, and what to make of it."""

    name: Slug | None = None
    from_: ScalarText | None = Field(default=None, alias="from", description="The first partition of the era.")
    until: ScalarText | None = Field(default=None, description="The last partition of the era, included.")
    has: list[Line] = Field(default=[], description="Columns that files of this era have.")
    lacks: list[Line] = Field(default=[], description="Columns that files of this era do not have.")
    rename: dict[Line, Column] = Field(default={}, description="Column of the source: column of the transform.")
    cast: dict[Column, SourceType] = Field(default={}, description="Rows whose value cannot be cast are quarantined.")
    default: dict[Column, ScalarText | None] = Field(default={}, description="Values of columns that are not there.")
    drop: list[Line] = Field(default=[], description="Columns of the source that count as not there.")


class RowRuleFile(FileModel):
    """Rows for which the expression is true are taken out before the transform sees them."""

    name: Title
    expression: Line
    action: Literal["quarantine", "suppress"]


class RowLimitsFile(FileModel):
    """How many rows of a partition, and of the run, may be in quarantine."""

    warn: Amount | None = None
    block: Amount | None = None


class InputFile(FileModel):
    """What the transform reads: an Iceberg table, files with {partition} in the pattern, or its own earlier output."""

    table: TableName | None = None
    files: Line | None = None
    own: YesNo = Field(default=False, description="The product's own earlier partitions; needs a look-back.")
    partition: Column | None = None
    lookback: Duration = "0d"
    lookahead: Duration = "0d"
    reference: Literal["as_recorded", "corrected_truth", "current", "as_decided"] | None = None
    version: Line | None = Field(default=None, description="A tag of the table; its newest snapshot by default.")
    columns: dict[Column, SourceType] = Field(
        default={}, description="What the transform sees. A column that a file lacks is never NULL in silence."
    )
    eras: list[EraFile] = []
    rows: list[RowRuleFile] = []
    quarantine: RowLimitsFile | None = None
