"""Plan what the checks measure in the candidate: aggregates, unique keys, look-ups. Pure.

Checks of the same key share one grouping, whatever the order of its columns. Within a partition the partition column
usually has one value and needs no grouping. A key that contains the partition column cannot repeat across partitions,
so for the run its counts are added up; only other keys are grouped over the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from errata.gate.measure.conditions import CONDITIONS, count_if_sql, newest_value_sql
from errata.gate.measure.names import check_measure, is_across_partitions
from errata.gate.rules.fit import refuse_misfit
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import Grain
from errata.model.product import Metric
from errata.ports.measure import Lookup


@dataclass(frozen=True, slots=True)
class CheckScan:
    """What the checks add to the scan of the candidate, by measurement."""

    aggregates: Mapping[str, str]
    unique: Mapping[str, tuple[str, ...]]
    unique_in_run: Mapping[str, tuple[str, ...]]
    lookups: Mapping[str, Lookup]


def build_check_scan(manifest: Manifest) -> CheckScan:
    """Build the scan of all checks; raises ``UsageError`` naming a check that cannot be measured."""
    aggregates: dict[str, str] = {}
    unique: dict[str, tuple[str, ...]] = {}
    across: dict[str, tuple[str, ...]] = {}
    lookups: dict[str, Lookup] = {}
    for check in manifest.checks:
        refuse_misfit(check, manifest)
        name = check_measure(check)
        if check.metric in CONDITIONS:
            aggregates[name] = count_if_sql(check, manifest)
        elif check.metric is Metric.FRESHNESS:
            aggregates[name] = newest_value_sql(check)
        elif check.metric is Metric.MISSING_REFERENCES and check.references is not None:
            lookups[name] = Lookup(check.columns, check.references.input, check.references.columns)
        elif check.metric is Metric.DUPLICATE_VALUES and is_across_partitions(check, manifest.target):
            across[name] = tuple(sorted(check.columns))
        elif check.metric is Metric.DUPLICATE_VALUES:
            unique[name] = tuple(sorted(set(check.columns) - _list_constant_columns(manifest.target)))
    return CheckScan(aggregates, unique, across, lookups)


def _list_constant_columns(target: TargetPin) -> set[str]:
    """Columns that have one value within a partition."""
    is_the_partition = (
        target.grain is Grain.VALUE
        or target.column_type == "string"
        or (target.grain is Grain.DAY and target.column_type == "date")
    )
    return {target.column} if is_the_partition else set()
