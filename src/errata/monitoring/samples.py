"""Turn figures of the ledger into values of metrics. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from errata.ledger.figures.figure_values import Durations, LedgerFigures, RunFigures
from errata.ledger.figures.readings import Reading, ReadingName
from errata.ledger.figures.run_results import LAKE
from errata.model.run import ChunkState

_REJECTED = {"rows_quarantined": "quarantined", "rows_set_aside": "set_aside", "rows_suppressed": "suppressed"}
_LEVELS = {"go": 0.0, "slow": 1.0, "pause": 2.0}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric; ``labels`` are in the order in which the metric declares them."""

    name: str
    labels: tuple[str, ...]
    value: float | Durations


def list_samples(
    figures: LedgerFigures, readings: Iterable[Reading], name_product: Callable[[str], str]
) -> Iterator[Sample]:
    """Every value; ``name_product`` is the product of a table."""
    for (product, state), n in sorted(figures.run_counts.items()):
        yield Sample("runs", (product, state), n)
    yield Sample("runs_without_series", (), figures.left_out)
    for run in figures.runs:
        yield from _list_progress(run)
        yield from _list_work(run)
        yield from _list_results(run)
    for owed in figures.owed:
        labels = (name_product(owed.table), owed.effect, owed.consumer, owed.state)
        yield Sample("outbox_items", labels, owed.count)
        yield Sample("outbox_oldest_timestamp_seconds", labels, to_timestamp(owed.oldest_at))
    leases = Counter(
        (name_product(one.table), one.kind, "expired" if one.is_expired else "held") for one in figures.leases
    )
    for held, n in sorted(leases.items()):
        yield Sample("leases", held, n)
    for reading in readings:
        yield from _list_reading(reading)
    yield Sample("audit_entries_total", (), figures.audit_entries)
    if figures.audit_at:
        yield Sample("audit_head_timestamp_seconds", (), to_timestamp(figures.audit_at))


def _list_progress(run: RunFigures) -> Iterator[Sample]:
    key = (run.product, run.run_id)
    yield Sample("run_state", (*key, run.state), 1)
    yield Sample("run_planned_timestamp_seconds", key, to_timestamp(run.planned_at))
    yield Sample("run_state_timestamp_seconds", key, to_timestamp(run.updated_at))
    if run.progress_at:
        yield Sample("run_progress_timestamp_seconds", key, to_timestamp(run.progress_at))
    if run.finish is not None:
        yield Sample("run_finish_timestamp_seconds", key, run.finish)
    if run.deadline:
        yield Sample("run_deadline_timestamp_seconds", key, to_timestamp(run.deadline))
    for state, n in sorted(run.chunks.items()):
        yield Sample("chunks", (*key, state), n)
    for state, n in sorted(run.waves.items()):
        yield Sample("waves", (*key, state), n)


def _list_work(run: RunFigures) -> Iterator[Sample]:
    key, cost = (run.product, run.run_id), run.cost
    # rows are counted by outcome only where an input is screened; Spark counts them all
    yield Sample("input_records_total", key, max(cost.get("rows_in", 0), cost.get("input_rows", 0)))
    yield Sample("output_records_total", key, run.output_rows)
    for name, outcome in _REJECTED.items():
        yield Sample("rejected_records_total", (*key, outcome), cost.get(name, 0))
    yield Sample("input_bytes_total", key, cost.get("input_bytes", 0))
    yield Sample("shuffle_bytes_total", key, cost.get("shuffle_bytes", 0))
    yield Sample("core_seconds_total", key, cost.get("core_ms", 0) / 1000)
    yield Sample("chunks_completed_total", key, run.chunks.get(ChunkState.DONE.value, 0))
    yield Sample("attempts_lost_total", key, run.lost_attempts)
    yield Sample("attempts_failed_total", key, run.failed_attempts)
    yield Sample("chunk_duration_seconds", key, run.durations)
    yield Sample("sink_write_duration_seconds", (*key, LAKE), Durations(run.writes, cost.get("write_ms", 0) / 1000))
    if run.estimate_usd is not None:
        yield Sample("cost_estimate_usd", key, float(run.estimate_usd))
    for level, n in sorted(run.throttle.items()):
        yield Sample("throttle_decisions_total", (*key, level), n)


def _list_results(run: RunFigures) -> Iterator[Sample]:
    key = (run.product, run.run_id)
    yield Sample("validation_failures_total", key, run.rejections)
    for copy, durations in sorted(run.deliveries.items()):
        yield Sample("sink_write_duration_seconds", (*key, copy), durations)
    for kind, durations in sorted(run.publications.items()):
        yield Sample("publish_duration_seconds", (*key, kind), durations)
    for place, durations in sorted(run.visible.items()):
        yield Sample("batch_visible_seconds", (*key, place), durations)


def _list_reading(reading: Reading) -> Iterator[Sample]:
    at, labels = to_timestamp(reading.at), tuple(name for name in (reading.product, reading.subject) if name)
    match reading.name:
        case ReadingName.STALE:
            names = ("stale_partitions", "stale_timestamp_seconds")
        case ReadingName.COPY_MISMATCH:
            names = ("copy_mismatch_partitions", "copy_check_timestamp_seconds")
        case ReadingName.LIVE_SIGNAL:
            names = ("live_signal", "live_signal_timestamp_seconds")
            yield Sample("live_signal_level", labels, _LEVELS.get(reading.detail, 0.0))
    if reading.value is not None:
        yield Sample(names[0], labels, reading.value)
    yield Sample(names[1], labels, at)


def to_timestamp(instant: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(instant).timestamp()
