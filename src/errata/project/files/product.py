"""The keys of a product file. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from errata.model.product import LINEAGE_COLUMNS
from errata.project.files.inputs import InputFile, TargetFile, TransformFile
from errata.project.files.publish import PublishFile
from errata.project.files.rules import CheckFile, CompareFile, ControlFile, ReconcileFile
from errata.project.files.section import FileModel, detect_form
from errata.project.files.settings import ApprovalFile, SignalFile, ThrottleFile
from errata.project.yaml.scalars import (
    Amount,
    Column,
    Count,
    Duration,
    InputName,
    Line,
    ProductName,
    ScalarText,
    Text,
    YesNo,
)


class DiffFile(FileModel):
    """How old and new rows are compared."""

    tolerance: dict[Column, Amount] = Field(
        default={},
        description="Largest difference per column that is no change. All other columns are compared exactly.",
    )


class ProtectFile(FileModel):
    """Partitions that can be corrected only with a named override."""

    recent: Duration = "0d"
    locked: list[ScalarText] = []


_LineageColumn = Literal[LINEAGE_COLUMNS]  # type: ignore[valid-type]


Lineage = Annotated[
    Annotated[list[_LineageColumn], Tag("<many>")] | Annotated[YesNo, Tag("<one>")], Discriminator(detect_form)
]


class DeterminismFile(FileModel):
    """Check at the start of a run that the same input gives the same output."""

    prove: Count = Field(description="Number of sample chunks to compute twice, at different parallelism.")


class ProductFile(FileModel):
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
    control: list[ControlFile] = []
    diff: DiffFile = DiffFile()
    classified: list[Column] = Field(default=[], description="Columns whose values are masked in all output.")
    protect: ProtectFile = ProtectFile()
    lineage_columns: Lineage = False
    consumers: list[Line] = []
    determinism: DeterminismFile | None = None
    throttle: ThrottleFile | None = Field(default=None, description="Keys that differ from the project's.")
    health: list[SignalFile] = Field(default=[], description="Signals in addition to the project's.")
    approval: ApprovalFile = Field(default=ApprovalFile(), description="Keys that differ from the project's.")
