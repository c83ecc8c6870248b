"""What measurements are called, and which columns count as content. Pure, and free of the SQL parser."""

from __future__ import annotations

from errata.model.manifest import Manifest, TargetPin
from errata.model.product import Check, Comparison, Control, Metric, Reconciliation
from errata.ports.measure import ROW_COUNT

RESERVED = frozenset({"accounting", "adopted", "completeness", "empty", "foreign", "quarantine", "schema"})
"""Names of the rules that are always there; a user's rule cannot have them."""


def check_measure(check: Check) -> str:
    """The measurement a check is judged by."""
    return ROW_COUNT if check.metric is Metric.ROW_COUNT else f"check.{check.name}"


def is_across_partitions(check: Check, target: TargetPin) -> bool:
    """Whether a check is about keys that may repeat in another partition: one number of the run, with no partition."""
    return check.metric is Metric.DUPLICATE_VALUES and check.per == "run" and target.column not in check.columns


def reconcile_measure(rule: Reconciliation) -> str:
    """The measurement of a reconciliation, in the candidate and in its input."""
    return f"reconcile.{rule.name}"


def control_measure(rule: Control) -> str:
    """The measurement of a control, in the candidate and in comparable partitions."""
    return f"control.{rule.name}"


def compare_measure(rule: Comparison) -> str:
    """The measurement of a comparison, in the candidate and in the prior output."""
    return f"compare.{rule.name}"


def content_columns(manifest: Manifest) -> tuple[str, ...]:
    """The columns of the content checksum: all of the target's but lineage, in name order."""
    return tuple(sorted(set(manifest.target.columns) - set(manifest.lineage_columns)))
