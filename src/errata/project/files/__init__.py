"""All keys of ``errata.yaml`` and of product files. Pure.

These models exist at this border only; the rest of Errata knows the values of ``errata.model.product``. What needs
more than one key to judge is in ``errata.project.build``. The docstrings and descriptions reach the JSON schema, so an
editor shows them.
"""

from __future__ import annotations

from errata.project.files.inputs import EraFile, InputFile, RowLimitsFile
from errata.project.files.product import ProductFile
from errata.project.files.publish import PublishFile
from errata.project.files.rules import THRESHOLDS, CheckFile, CompareFile, ControlFile, ReconcileFile
from errata.project.files.settings import (
    ApprovalFile,
    CatalogFile,
    EvidenceFile,
    PersonFile,
    ProjectFile,
    SignalFile,
    ThrottleFile,
)

__all__ = [
    "THRESHOLDS",
    "ApprovalFile",
    "CatalogFile",
    "CheckFile",
    "CompareFile",
    "ControlFile",
    "EraFile",
    "EvidenceFile",
    "InputFile",
    "PersonFile",
    "ProductFile",
    "ProjectFile",
    "PublishFile",
    "ReconcileFile",
    "RowLimitsFile",
    "SignalFile",
    "ThrottleFile",
]
