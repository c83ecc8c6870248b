"""Products and projects as values. Pure.

``errata.project`` reads them from YAML and reports errors in the files.
"""

from __future__ import annotations

from errata.model.product.product import (
    LINEAGE_COLUMNS,
    Freeze,
    Input,
    Merge,
    Product,
    Protect,
    Publish,
    Target,
    Transform,
    Waves,
    is_sql_file,
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
    "Waves",
    "is_sql_file",
]
