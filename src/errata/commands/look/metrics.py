"""`errata metrics`: values for Prometheus, from the ledger alone. Starts no JVM, changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from errata._version import __version__
from errata.errors import ErrataError, UsageError
from errata.evidence.head_export import measure_lag
from errata.ledger.figures.figure_values import DURATION_BUCKETS, Durations
from errata.monitoring.exposition import render_text, serve_metrics, write_textfile
from errata.monitoring.metrics import METRICS
from errata.monitoring.samples import Sample, list_samples
from errata.views.metrics import MetricsFileView, MetricsView, MetricValue, MetricView
from errata.workspace import Workspace

_MOST_RUNS = 1000


def show_metrics(workspace: Workspace, last: int) -> MetricsView:
    """Every metric with its values."""
    found: dict[str, list[Sample]] = {}
    for sample in read_samples(workspace, last):
        found.setdefault(sample.name, []).append(sample)
    return MetricsView(
        tuple(
            MetricView(
                metric.full_name, metric.type.value, metric.help,
                tuple(_build_value(metric.labels, one) for one in found.get(metric.name, ())),
            )
            for metric in METRICS
            if metric.name in found
        )
    )  # fmt: skip


def _build_value(names: tuple[str, ...], sample: Sample) -> MetricValue:
    labels = dict(zip(names, sample.labels, strict=True))
    if not isinstance(sample.value, Durations):
        return MetricValue(labels, float(sample.value))
    buckets = dict(zip(map(str, DURATION_BUCKETS), sample.value.within, strict=True))
    return MetricValue(labels, sample.value.seconds, sample.value.count, buckets)


def print_metrics(workspace: Workspace, last: int) -> str:
    """The same in the text format of Prometheus."""
    return render_text(partial(read_samples, workspace, last))


def write_metrics(workspace: Workspace, path: Path, last: int) -> MetricsFileView:
    """The same in a file, replaced in one step."""
    write_textfile(partial(read_samples, workspace, last), path)
    return MetricsFileView(str(path))


def serve(
    workspace: Workspace, address: str, last: int, on_error: Callable[[ErrataError], None]
) -> AbstractContextManager[str]:
    """Answer scrapes until the block ends; gives the address."""
    return serve_metrics(partial(read_samples, workspace, last), address, on_error)


def read_samples(workspace: Workspace, last: int) -> list[Sample]:
    """Every value; a project without a ledger has recorded nothing."""
    if not 0 <= last <= _MOST_RUNS:
        raise UsageError(f"--runs {last} was refused; expected 0 to {_MOST_RUNS}")
    project = workspace.project
    with workspace.ledger.or_empty() as ledger:

        def work() -> list[Sample]:
            figures, readings = ledger.figures.collect(last), ledger.readings.list()
            products = {one.target.table: one.name for one in project.products.values()}
            products |= {run.table: run.product for run in figures.runs}
            return [*list_samples(figures, readings, lambda table: products.get(table, table))]

        found = ledger.read_together(work)
        found.append(Sample("info", (__version__, project.name), 1))
        if project.evidence.heads is not None:
            found.append(Sample("audit_unexported_seconds", (), measure_lag(project, ledger).seconds))
    return found
