"""Products and projects as values. Pure.

``errata.project`` reads them from YAML and reports errors in the files.
"""

from __future__ import annotations

from errata.model.product.completeness import Completeness
from errata.model.product.late import Late
from errata.model.product.product import (
    LINEAGE_BY_DEFAULT,
    LINEAGE_COLUMNS,
    READ_AT_ITS_TIME,
    Freeze,
    Input,
    Live,
    Merge,
    Policy,
    Product,
    Protect,
    Publish,
    Target,
    Transform,
    Waves,
    is_sql_file,
)
from errata.model.product.project import (
    S3,
    Alarm,
    CampaignSettings,
    Catalog,
    DbtSettings,
    Limits,
    Person,
    Project,
    Role,
)
from errata.model.product.rules import (
    INEXACT,
    PII_KINDS,
    Check,
    Comparison,
    Control,
    Distribution,
    GroupKey,
    Metric,
    Reconciliation,
    References,
    Threshold,
)

__all__ = [
    "INEXACT",
    "LINEAGE_BY_DEFAULT",
    "LINEAGE_COLUMNS",
    "PII_KINDS",
    "READ_AT_ITS_TIME",
    "S3",
    "Alarm",
    "CampaignSettings",
    "Catalog",
    "Check",
    "Comparison",
    "Completeness",
    "Control",
    "DbtSettings",
    "Distribution",
    "Freeze",
    "GroupKey",
    "Input",
    "Late",
    "Limits",
    "Live",
    "Merge",
    "Metric",
    "Person",
    "Policy",
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
