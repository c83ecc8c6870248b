"""The checks, reconciliations and comparisons of a run manifest as one measure plan. Pure.

Per table there is one set of aggregates, grouped by partition, and at most one two-level aggregate for uniqueness;
the number of scans does not depend on the number of checks. The prior output is counted and compared; its checksum is
taken only when someone asks for a diff.

Sums of decimals stay decimal and sums of integer columns of the target are taken as decimal(38, 0), so they are exact.
Sums of integer inputs are 64-bit: exact, or an error. Sums of floating-point columns are measured as Spark adds them,
differ in the last digits from scan to scan, and are marked inexact: give them a tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from errata.errors import UsageError
from errata.model.manifest import Manifest
from errata.model.product import Metric
from errata.validator.conditions import CONDITIONS, check_columns, count_if
from errata.validator.expressions import aggregate
from errata.validator.names import check_measure, compare_measure, content_columns, reconcile_measure
from errata.validator.ports import CANDIDATE, PRIOR, ROW_COUNT, MeasurePlan, Scan, input_scope

__all__ = ["RESERVED", "compile_plan"]

RESERVED = frozenset({"accounting", "adopted", "completeness", "empty", "foreign", "quarantine", "schema"})
"""Names of the rules that are always there; a user's rule cannot have them."""


def compile_plan(manifest: Manifest) -> MeasurePlan:
    """What to measure, or a usage error that says which rule cannot be."""
    _refuse_names(manifest)
    types = manifest.target.columns
    count = {ROW_COUNT: "COUNT(*)"}
    content = content_columns(manifest)
    rows = {check_measure(c): count_if(c, types) for c in manifest.checks if c.metric in CONDITIONS}
    unique = {check_measure(c): check_columns(c, types) for c in manifest.checks if c.metric is Metric.DUPLICATE_VALUES}
    totals = {
        reconcile_measure(r): aggregate(r.target, where=f"reconcile {r.name}, target", types=types).sql("spark")
        for r in manifest.reconcile
    }
    compared = {
        compare_measure(c): aggregate(c.metric, where=f"compare {c.name}", types=types).sql("spark")
        for c in manifest.compare
    }
    return MeasurePlan(
        (
            Scan(CANDIDATE, count | rows | totals | compared, unique, content),
            Scan(PRIOR, count | compared),
            *_input_scans(manifest, count),
        )
    )


def _input_scans(manifest: Manifest, count: Mapping[str, str]) -> Iterable[Scan]:
    pins = {pin.name: pin for pin in manifest.inputs}
    for rule in manifest.reconcile:
        if rule.input not in pins:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected one of {', '.join(sorted(pins))}"
            )
        if pins[rule.input].partition is None:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected an input with a partition column, "
                "because reference data is not cut to the partitions"
            )
    for name in sorted({rule.input for rule in manifest.reconcile}):
        sums = {
            reconcile_measure(r): aggregate(r.source, where=f"reconcile {r.name}, source", types=None).sql("spark")
            for r in manifest.reconcile
            if r.input == name
        }
        yield Scan(input_scope(name), {**count, **sums})


def _refuse_names(manifest: Manifest) -> None:
    names = Counter(check.name for check in manifest.checks)
    names.update(rule.name for rule in manifest.reconcile)
    names.update(rule.name for rule in manifest.compare)
    for name, times in names.items():
        if times > 1 or name in RESERVED:
            why = "is taken by Errata itself" if name in RESERVED else f"is used {times} times"
            raise UsageError(f"the rule name {name} was refused; expected one name for one rule, but it {why}")
