"""Compile the rules of a run manifest into one measure plan. Pure.

Each table has one set of aggregates grouped by partition, at most one two-level aggregate for uniqueness, one for all
reconciliations with groups and one for all shares, so the number of scans does not depend on the number of checks. The
prior output is counted and compared; its checksum is computed only for a diff. Control partitions are read from the
prior output too, in their own scan: they lie outside the scope, so nothing is read twice.

Sums of decimals stay decimal and sums of integer columns of the target are computed as decimal(38, 0), so they are
exact. Sums of integer inputs are 64-bit: exact, or an error. Sums of floating-point columns are added as Spark does it,
differ in the last digits from scan to scan, and are marked inexact: give them a tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from errata.errors import UsageError
from errata.gate.measure.checks import build_check_scan
from errata.gate.measure.distribution import DistributionScan, build_distribution_scan
from errata.gate.measure.names import (
    RESERVED,
    compare_measure,
    content_columns,
    control_measure,
    find_migrated_input,
)
from errata.gate.measure.origins import build_origin_counts, build_prior_counts, find_listed_columns
from errata.gate.measure.reconcile import build_grouped_totals, build_partition_totals
from errata.gate.rules.expressions import parse_aggregate
from errata.model.manifest import InputPin, Manifest
from errata.model.partition import sort_oldest_first
from errata.ports.measure import CANDIDATE, CONTROL, PRIOR, ROW_COUNT, MeasurePlan, Scan, input_scope


def compile_plan(manifest: Manifest) -> MeasurePlan:
    """Compile the measure plan; raises ``UsageError`` naming a rule that cannot be measured."""
    _refuse_names(manifest)
    types = manifest.target.columns
    count = {ROW_COUNT: "COUNT(*)"}
    content = content_columns(manifest)
    checks = build_check_scan(manifest)
    totals = build_partition_totals(manifest.reconcile, "target", types)
    compared = {
        compare_measure(c): parse_aggregate(c.metric, where=f"compare {c.name}", types=types, key="metric").sql("spark")
        for c in manifest.compare
    }
    controlled = {
        control_measure(c): parse_aggregate(c.metric, where=f"control {c.name}", types=types, key="metric").sql("spark")
        for c in manifest.control
    }
    groups = build_grouped_totals(manifest.reconcile, "target", types)
    spread = build_distribution_scan(manifest)
    earlier, beside = (build_distribution_scan(manifest, against) for against in ("prior", "control"))
    return MeasurePlan(
        (
            Scan(
                CANDIDATE,
                {
                    **count,
                    **checks.aggregates,
                    **totals,
                    **compared,
                    **controlled,
                    **build_origin_counts(manifest),
                    **spread.quantiles,
                },
                checks.unique,
                content,
                groups,
                unique_in_run=checks.unique_in_run,
                lookups=checks.lookups,
                shares=spread.shares,
                estimated=spread.estimated,
            ),
            Scan(
                PRIOR,
                {**count, **compared, **build_prior_counts(manifest), **earlier.quantiles},
                shares=earlier.shares,
                estimated=earlier.estimated,
                subjects=find_listed_columns(manifest),
            ),
            *_iterate_control_scans(manifest, {**count, **controlled}, beside),
            *_iterate_input_scans(manifest, count),
        )
    )


def _iterate_control_scans(
    manifest: Manifest, aggregates: Mapping[str, str], spread: DistributionScan
) -> Iterable[Scan]:
    controls = {name for partition in manifest.partitions for name in manifest.control_partitions.get(partition, ())}
    if controls and (manifest.control or spread.quantiles or spread.shares):
        yield Scan(
            CONTROL,
            {**aggregates, **spread.quantiles},
            partitions=sort_oldest_first(manifest.target.grain, controls),
            shares=spread.shares,
            estimated=spread.estimated,
        )


def _iterate_input_scans(manifest: Manifest, count: Mapping[str, str]) -> Iterable[Scan]:
    pins = {pin.name: pin for pin in manifest.inputs}
    for rule in manifest.reconcile:
        if rule.input not in pins:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected one of {', '.join(sorted(pins))}",
                key="input",
            )
        if pins[rule.input].partition is None and rule.per != "run":
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected an input with a partition column, "
                "because reference data is not cut to the partitions",
                hint="per: run compares the whole input with the whole output of the run",
                key="per",
            )
        if pins[rule.input].partition is None and pins[rule.input].snapshots:
            raise UsageError(
                f"reconcile {rule.name}: input {rule.input} was refused; expected an input that is read at one "
                f"snapshot, found {len(pins[rule.input].snapshots)}, because reference is {pins[rule.input].reference}",
                key="input",
            )
    migrated = find_migrated_input(manifest)
    for name in sorted({rule.input for rule in manifest.reconcile} | ({migrated} if migrated else set())):
        rules = [rule for rule in manifest.reconcile if rule.input == name]
        types = _declared_types(pins[name])
        groups = build_grouped_totals(rules, "source", types)
        # an input that is read whole has no partitions to count rows by
        sums = {} if pins[name].partition is None else {**count, **build_partition_totals(rules, "source", types)}
        content = content_columns(manifest) if name == migrated else ()
        yield Scan(input_scope(name), sums, content=content, groups=groups)
    # a percentage limit on quarantined rows needs the total; screened inputs get it from their row accounts
    for name in sorted({one.name for one in manifest.row_limits} - {rule.input for rule in manifest.reconcile}):
        pin = pins.get(name)
        if pin is not None and pin.partition is not None and not pin.own and not pin.is_counted:
            yield Scan(input_scope(name), count)


def _declared_types(pin: InputPin) -> Mapping[str, str] | None:
    """Column types of an input that declares them; None otherwise, because then only the engine knows."""
    partition = {} if pin.partition is None else {pin.partition: pin.column_type or ""}
    return {**partition, **pin.columns} if pin.columns else None


def _refuse_names(manifest: Manifest) -> None:
    names = Counter(check.name for check in manifest.checks)
    names.update(rule.name for rule in manifest.reconcile)
    names.update(rule.name for rule in manifest.compare)
    names.update(rule.name for rule in manifest.control)
    names.update(rule.name for rule in manifest.distribution)
    for name, times in names.items():
        if times > 1 or name in RESERVED:
            why = "is taken by Errata itself" if name in RESERVED else f"is used {times} times"
            raise UsageError(f"the rule name {name} was refused; expected one name for one rule, but it {why}")
