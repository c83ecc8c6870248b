"""Products and projects as the rest of Errata knows them. Pure.

These are the values; ``errata.project`` reads them from YAML and says what is wrong with a file.
"""

from __future__ import annotations

from errata.model.product.product import (
    LINEAGE_COLUMNS,
    Freeze,
    Groups,
    Input,
    Merge,
    Product,
    Protect,
    Publish,
    Target,
    Transform,
)
from errata.model.product.project import S3, Alarm, Catalog, Limits, Person, Project, Role
from errata.model.product.rules import (
    INEXACT,
    PII_KINDS,
    Check,
    Comparison,
    Control,
    GroupKey,
    Metric,
    Reconciliation,
    References,
    Threshold,
)

__all__ = [
    "INEXACT",
    "LINEAGE_COLUMNS",
    "PII_KINDS",
    "S3",
    "Alarm",
    "Catalog",
    "Check",
    "Comparison",
    "Control",
    "Freeze",
    "GroupKey",
    "Groups",
    "Input",
    "Limits",
    "Merge",
    "Metric",
    "Person",
    "Product",
    "Project",
    "Protect",
    "Publish",
    "Reconciliation",
    "References",
    "Role",
    "Target",
    "Threshold",
    "Transform",
]
