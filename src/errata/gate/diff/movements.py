"""Movements of declared metrics per partition, from stored measurements. Pure.

A comparison has a value before and after. A reconciliation has the value of the source and that of the output; the
prior output is not measured for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext

from errata.gate.measure.names import compare_measure, reconcile_measure
from errata.gate.verdict.findings import parse_decimal, round_percent
from errata.model.diff import MetricMoves, Movement, PartitionDiff
from errata.model.manifest import Manifest
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT, Measurement, input_scope

MAX_SHOWN = 5


def build_metric_moves(
    manifest: Manifest, measurements: Iterable[Measurement], partitions: Sequence[str]
) -> tuple[MetricMoves, ...]:
    """Movements of every declared metric measured per partition; grouped and per-run metrics are left out."""
    values = {(m.scope, m.partition, m.name): m.value for m in measurements}
    listed = [
        _build_moves(values, partitions, (PRIOR, compare_measure(rule)), rule.metric, MetricMoves(rule.name, "compare"))
        for rule in manifest.compare
    ]
    listed += [
        _build_moves(
            values,
            partitions,
            (input_scope(rule.input), reconcile_measure(rule)),
            rule.target,
            MetricMoves(rule.name, "reconcile", f"{rule.source} of {rule.input}", f"{rule.target} of the output"),
        )
        for rule in manifest.reconcile
    ]
    return tuple(one for one in listed if one.partitions)


def build_row_moves(measurements: Iterable[Measurement], partitions: Sequence[str]) -> MetricMoves:
    """Movement of the number of rows."""
    values = {(m.scope, m.partition, m.name): m.value for m in measurements}
    return _build_moves(values, partitions, (PRIOR, ROW_COUNT), "count(*)", MetricMoves("rows", "compare"))


def _build_moves(
    values: Mapping[tuple[str, str, str], str | None],
    partitions: Sequence[str],
    place: tuple[str, str],
    metric: str,
    declared: MetricMoves,
) -> MetricMoves:
    scope, name = place
    found = tuple(
        build_movement(p, values.get((scope, p, name)), values[CANDIDATE, p, name])
        for p in partitions
        if (CANDIDATE, p, name) in values
    )
    largest, smallest = find_extremes(found)
    adds_up = metric.lstrip().lower().startswith(("sum(", "count(")) and "distinct" not in metric.lower()
    return replace(
        declared,
        partitions=found,
        before=sum_values(m.before for m in found) if adds_up else None,
        after=sum_values(m.after for m in found) if adds_up else None,
        largest=largest,
        smallest=smallest,
    )


def build_movement(partition: str, before: str | None, after: str | None) -> Movement:
    """Movement between two values; without change and percentage if either is not a number."""
    old, new = parse_decimal(before), parse_decimal(after)
    if old is None or new is None:
        return Movement(partition, before, after)
    with localcontext(prec=100):
        change = new - old
        percent = format(round_percent(change * 100 / abs(old)), "f") if old else None
        return Movement(partition, before, after, format(change, "f"), percent)


def find_extremes(moves: Sequence[Movement], shown: int = MAX_SHOWN) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Partitions that moved most and least by percentage, without those that did not move."""
    moved = [m for m in moves if m.percent is not None and Decimal(m.change or 0)]
    ranked = sorted(moved, key=lambda m: -abs(Decimal(m.percent or 0)))
    names = [m.partition for m in ranked]
    return tuple(names[:shown]), tuple(reversed(names[-shown:]))


def sum_values(values: Iterable[str | None]) -> str | None:
    """Sum of the values; NULL (a partition without rows) counts as 0. None if any other value is not a number."""
    with localcontext(prec=100):
        result = Decimal(0)
        for text in values:
            number = parse_decimal(text)
            if number is None and text is not None:
                return None
            result += number or 0
        return format(result, "f")


def build_column_moves(name: str, parts: Iterable[PartitionDiff]) -> MetricMoves:
    """Movements of a column's sums over partitions compared by key, used where no metric is declared."""
    found = tuple(
        build_movement(part.partition, part.columns[name].sum_before, part.columns[name].sum_after)
        for part in parts
        if name in part.columns and part.columns[name].sum_before is not None
    )
    largest, smallest = find_extremes(found)
    return MetricMoves(f"sum({name})", "column", partitions=found, largest=largest, smallest=smallest)
