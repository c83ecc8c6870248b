"""Metrics of a message: numbers before and after, from the measurements of the gate. Pure.

A metric over a classified column is named without its values. In the ledger they are aggregates; in a message, over a
partition with one row, they would be a value of that row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from errata.gate.diff.movements import build_metric_moves, build_movement, build_row_moves
from errata.model.consumer.message import Metric
from errata.model.diff import MetricMoves, Movement
from errata.model.manifest import Manifest
from errata.ports.measure import Measurement
from errata.text.sql_names import find_column

MOST_PARTITIONS = 3
"""Partitions of a metric that are listed: those that moved most."""


def summarize_metrics(
    manifest: Manifest,
    measurements: Iterable[Measurement],
    partitions: Sequence[str],
    classified: Sequence[str],
    *,
    is_undo: bool = False,
) -> tuple[Metric, ...]:
    """Rows and every ``compare`` rule over these partitions; after an undo, the numbers go the other way."""
    stored = tuple(measurements)
    compared = [one for one in build_metric_moves(manifest, stored, partitions) if one.kind == "compare"]
    expressions = {rule.name: rule.metric for rule in manifest.compare}
    rows = build_row_moves(stored, partitions)
    listed = [*([rows] if rows.partitions else []), *compared]
    return tuple(_summarize(one, expressions, classified, is_undo) for one in listed)


def _summarize(moves: MetricMoves, expressions: Mapping[str, str], classified: Sequence[str], is_undo: bool) -> Metric:
    if find_column(expressions.get(moves.name, ""), classified):
        return Metric(moves.name, masked=True)
    # a partition that did not move least is worth a line; in the order of the calendar
    ranked = {name: n for n, name in enumerate(moves.largest)}
    shown = sorted(moves.partitions, key=lambda one: ranked.get(one.partition, len(ranked)))[:MOST_PARTITIONS]
    names = {one.partition for one in shown}
    before, after = (moves.after, moves.before) if is_undo else (moves.before, moves.after)
    return Metric(
        name=moves.name,
        before=before,
        after=after,
        percent=build_movement("", before, after).percent,
        has_total=before is not None and after is not None,
        partitions=tuple(_turn(one, is_undo) for one in moves.partitions if one.partition in names),
        more=len(moves.partitions) - len(shown),
    )


def _turn(one: Movement, is_undo: bool) -> Movement:
    return build_movement(one.partition, one.after, one.before) if is_undo else one
