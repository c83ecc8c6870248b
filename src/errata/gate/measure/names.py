"""Names of measurements, and the columns that count as content. Pure; does not import the SQL parser."""

from __future__ import annotations

from errata.model.kind import MIGRATE
from errata.model.manifest import Manifest, TargetPin
from errata.model.product import Check, Comparison, Control, Distribution, Metric, Reconciliation
from errata.ports.measure import ROW_COUNT

RESERVED = frozenset(
    {
        "accounting",
        "adopted",
        "attest",
        "completeness",
        "empty",
        "foreign",
        "migrate",
        "origins",
        "quarantine",
        "schema",
    }
)
"""Names of built-in rules, which a user's rule cannot have."""
ADDED, REMOVED, CHANGED = "attest.added", "attest.removed", "attest.changed"
"""Measurements of an attestation: rows that only the new output has, that only main has, and that differ."""


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


def find_migrated_input(manifest: Manifest) -> str | None:
    """The input whose rows a run takes over and compares: of a migration, or of a restore from somewhere else.

    None for other runs, or if it was overridden.
    """
    is_restore = manifest.restored is not None and bool(manifest.restored.origin)
    if not is_restore and (manifest.kind != MIGRATE or manifest.has_override("kind")):
        return None
    return next(
        pin.name
        for pin in manifest.inputs
        if (pin.kind == "table" or pin.recording)
        and pin.partition
        and not pin.own
        and pin.location != manifest.target.table
    )


def content_columns(manifest: Manifest) -> tuple[str, ...]:
    """Columns of the content checksum: all columns of the target except lineage, in name order."""
    return tuple(sorted(set(manifest.target.columns) - set(manifest.lineage_columns)))
