"""The shape of ``errata.yaml`` and of product files: every key there is. Pure.

These models exist at this border only; the rest of Errata knows the values of ``errata.model.product``. What needs
more than one key to judge is in ``errata.project.rules``. The docstrings and descriptions reach the JSON schema, so
an editor shows them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from errata.model.product import LINEAGE_COLUMNS
from errata.project.fields import (
    Amount,
    Bytes,
    Call,
    Column,
    Count,
    DecimalText,
    Duration,
    Identifier,
    InputName,
    Json,
    Line,
    PersonName,
    ProductName,
    ScalarText,
    Slug,
    TableName,
    Text,
    Title,
    YesNo,
)

__all__ = ["THRESHOLDS", "CatalogFile", "CheckFile", "CompareFile", "InputFile", "ProductFile", "ProjectFile"]


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


def _either(value: Any) -> str:
    return "<many>" if isinstance(value, (dict, list)) else "<one>"


class CatalogFile(_File):
    """An Iceberg catalog. A relative uri or warehouse is relative to errata.yaml."""

    type: Literal["jdbc", "rest", "glue", "hive"]
    uri: Line | None = None
    warehouse: Line | None = None
    properties: dict[str, ScalarText] = Field(default={}, description="Further settings of the catalog, passed on.")


class SparkFile(_File):
    """The Spark session of workers."""

    master: Line = "local[2]"
    conf: dict[str, ScalarText] = {}


class PersonFile(_File):
    """Someone who may act."""

    roles: Annotated[list[Literal["requester", "operator", "approver", "publisher"]], Field(min_length=1)]


class LimitsFile(_File):
    """What one request may touch without a named override."""

    max_partitions: Count = 180
    max_rows: Count | None = None
    max_bytes: Bytes | None = None
    max_usd: DecimalText | None = None


class PriceFile(_File):
    """What compute costs, for estimates."""

    core_hour_usd: DecimalText


People = Annotated[
    Annotated[dict[PersonName, PersonFile], Field(min_length=1), Tag("<many>")]
    | Annotated[Literal["single-user"], Tag("<one>")],
    Discriminator(_either),
]


class ProjectFile(_File):
    """errata.yaml: where things are, who may do what, defaults."""

    project: Slug
    ledger: Line = Field(description="sqlite:///relative/path or postgresql+psycopg://…")
    catalogs: Annotated[dict[Identifier, CatalogFile], Field(min_length=1)]
    spark: SparkFile = SparkFile()
    people: People = Field(description="People and their roles, or single-user, which every record then says.")
    limits: LimitsFile = LimitsFile()
    price: PriceFile | None = None
    chunk_bytes: Bytes = Field(default=512 * 1024 * 1024, description="How much input one chunk aims to read.")


class PartitionFile(_File):
    """The partition column of the target and how wide a partition is."""

    column: Column
    grain: Literal["hour", "day", "month", "year", "value"]


class TargetFile(_File):
    """The governed table."""

    table: TableName
    partition: PartitionFile
    key: list[Column] = []


class TransformFile(_File):
    """The function that computes the product."""

    call: Call
    version: ScalarText
    config: dict[str, Json] = {}


class InputFile(_File):
    """What the transform reads: an Iceberg table, or files with {partition} in their pattern."""

    table: TableName | None = None
    files: Line | None = None
    partition: Column | None = None
    lookback: Duration = "0d"
    lookahead: Duration = "0d"
    reference: Literal["as_recorded", "corrected_truth", "current", "as_decided"] | None = None


class PublishFile(_File):
    """How the correction reaches readers."""

    mode: Literal["replace_partitions"] = "replace_partitions"
    rollback_window: Duration = "30d"


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
    "not_null",
    "unique",
    "accepted_values",
]


class CheckFile(_File):
    """A data-quality rule in the words of the Open Data Contract Standard, judged per partition."""

    name: Title | None = None
    metric: _MetricName | None = None
    column: Column | None = None
    columns: Annotated[list[Column], Field(min_length=1)] | None = None
    expression: Line | None = Field(default=None, description="A row condition; rows where it holds are counted.")
    valid_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="validValues")
    pattern: Line | None = None
    missing_values: Annotated[list[ScalarText], Field(min_length=1)] | None = Field(default=None, alias="missingValues")
    unit: Literal["rows", "percent"] = "rows"
    severity: Literal["warn", "block"] = "block"
    must_be: DecimalText | None = Field(default=None, alias="mustBe")
    must_not_be: DecimalText | None = Field(default=None, alias="mustNotBe")
    must_be_greater_than: DecimalText | None = Field(default=None, alias="mustBeGreaterThan")
    must_be_greater_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeGreaterOrEqualTo")
    must_be_less_than: DecimalText | None = Field(default=None, alias="mustBeLessThan")
    must_be_less_or_equal_to: DecimalText | None = Field(default=None, alias="mustBeLessOrEqualTo")
    must_be_between: _Pair | None = Field(default=None, alias="mustBeBetween")
    must_not_be_between: _Pair | None = Field(default=None, alias="mustNotBeBetween")


class ReconcileFile(_File):
    """An aggregate of an input that must equal an aggregate of the output, per partition."""

    name: Title
    input: InputName
    source: Line
    target: Line
    tolerance: Amount = "0"


class CompareFile(_File):
    """An aggregate of the candidate against the same of the output accepted before."""

    name: Title | None = None
    metric: Line
    warn: Amount | None = None
    block: Amount | None = None


class ProtectFile(_File):
    """Partitions that need a named override to be touched."""

    recent: Duration = "0d"
    locked: list[ScalarText] = []


_LineageColumn = Literal[LINEAGE_COLUMNS]  # type: ignore[valid-type]
Lineage = Annotated[
    Annotated[list[_LineageColumn], Tag("<many>")] | Annotated[YesNo, Tag("<one>")], Discriminator(_either)
]


class ProductFile(_File):
    """products/NAME.yaml: one governed product."""

    product: ProductName
    owner: Line
    description: Text = ""
    target: TargetFile
    transform: TransformFile
    inputs: Annotated[dict[InputName, InputFile], Field(min_length=1)]
    publish: PublishFile = PublishFile()
    checks: list[CheckFile] = []
    reconcile: list[ReconcileFile] = []
    compare: list[CompareFile] = []
    protect: ProtectFile = ProtectFile()
    lineage_columns: Lineage = False
    consumers: list[Line] = []
