"""Names of measurements, and the columns that count as content. Pure; does not import the SQL parser."""

from __future__ import annotations

from errata.model.manifest import Manifest, TargetPin
from errata.model.product import Check, Comparison, Control, Distribution, Metric, Reconciliation
from errata.ports.measure import ROW_COUNT

RESERVED = frozenset({"accounting", "adopted", "completeness", "empty", "foreign", "quarantine", "schema"})
"""Names of built-in rules, which a user's rule cannot have."""


def check_measure(check: Check) -> str:
    """Name of the measurement a check is judged by."""
    return ROW_COUNT if check.metric is Metric.ROW_COUNT else f"check.{check.name}"


def is_across_partitions(check: Check, target: TargetPin) -> bool:
    """Whether a check counts keys that may repeat in another partition, which gives one number for the whole run."""
    return check.metric is Metric.DUPLICATE_VALUES and check.per == "run" and target.column not in check.columns


def reconcile_measure(rule: Reconciliation) -> str:
    """Name of a reconciliation's measurement, in the candidate and in its input."""
    return f"reconcile.{rule.name}"


def control_measure(rule: Control) -> str:
    """Name of a control's measurement, in the candidate and in comparable partitions."""
    return f"control.{rule.name}"


def compare_measure(rule: Comparison) -> str:
    """Name of a comparison's measurement, in the candidate and in the prior output."""
    return f"compare.{rule.name}"


def shares_measure(rule: Distribution) -> str:
    """Name of the measurement with the rows of each value of a column."""
    return f"distribution.{rule.name}"


def quantile_measure(rule: Distribution, quantile: str) -> str:
    """Name of one quantile's measurement."""
    return f"distribution.{rule.name} {quantile}"


def content_columns(manifest: Manifest) -> tuple[str, ...]:
    """Columns of the content checksum: all columns of the target except lineage, in name order."""
    return tuple(sorted(set(manifest.target.columns) - set(manifest.lineage_columns)))
