"""What measurements are called, and which columns count as content. Pure, and free of the SQL parser."""

from __future__ import annotations

from errata.model.manifest import Manifest
from errata.model.product import Check, Comparison, Metric, Reconciliation
from errata.validator.ports import ROW_COUNT

__all__ = ["check_measure", "compare_measure", "content_columns", "reconcile_measure"]


def check_measure(check: Check) -> str:
    """The measurement a check is judged by."""
    return ROW_COUNT if check.metric is Metric.ROW_COUNT else f"check.{check.name}"


def reconcile_measure(rule: Reconciliation) -> str:
    """The measurement of a reconciliation, in the candidate and in its input."""
    return f"reconcile.{rule.name}"


def compare_measure(rule: Comparison) -> str:
    """The measurement of a comparison, in the candidate and in the prior output."""
    return f"compare.{rule.name}"


def content_columns(manifest: Manifest) -> tuple[str, ...]:
    """The columns of the content checksum: all of the target's but lineage, in name order."""
    return tuple(sorted(set(manifest.target.columns) - set(manifest.lineage_columns)))
