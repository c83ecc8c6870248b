"""Give metrics to Prometheus: as text, in a file for node_exporter, or over HTTP. Uses prometheus-client."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from errata.errors import ErrataError, MissingDriver, StorageRefused, UsageError
from errata.ledger.figures.figure_values import DURATION_BUCKETS, Durations
from errata.monitoring.metrics import BY_NAME, METRICS, MetricType
from errata.monitoring.samples import Sample

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family

Read = Callable[[], Iterable[Sample]]


class LedgerCollector:
    """Reads the ledger when it is asked, so that a value is never older than its scrape.

    ``on_error`` gets what went wrong, and the ledger counts as down; without it the error is raised.
    """

    def __init__(self, read: Read, on_error: Callable[[ErrataError], None] | None = None) -> None:
        self._read = read
        self._on_error = on_error
        self._lock = threading.Lock()  # scrapes that overlap would each read the whole ledger at once

    def collect(self) -> Iterator[Family]:
        """Every metric that has a value, in the order of the list."""
        with self._lock:
            found = self._read_all()
        for metric in METRICS:
            if metric.name in found:
                yield _build_family(metric.name, found[metric.name])

    def _read_all(self) -> dict[str, list[Sample]]:
        started, found = time.monotonic(), dict[str, list[Sample]]()
        is_up = True
        try:
            for sample in self._read():
                found.setdefault(sample.name, []).append(sample)
        except ErrataError as error:
            if self._on_error is None:
                raise
            self._on_error(error)
            is_up, found = False, {}
        found["ledger_up"] = [Sample("ledger_up", (), float(is_up))]
        found["collect_duration_seconds"] = [Sample("collect_duration_seconds", (), time.monotonic() - started)]
        return found

    def describe(self) -> list[Family]:
        """Nothing: a registry that asks for the names beforehand would read the ledger for them."""
        return []


def _build_family(name: str, samples: Iterable[Sample]) -> Family:
    from prometheus_client import core

    metric = BY_NAME[name]
    kinds = {
        MetricType.COUNTER: core.CounterMetricFamily,
        MetricType.GAUGE: core.GaugeMetricFamily,
        MetricType.HISTOGRAM: core.HistogramMetricFamily,
        MetricType.SUMMARY: core.SummaryMetricFamily,
    }
    family: Family = kinds[metric.type](metric.full_name, metric.help, labels=metric.labels)
    for sample in samples:
        _add_sample(family, sample)
    return family


def _add_sample(family: Family, sample: Sample) -> None:
    value = sample.value
    if not isinstance(value, Durations):
        family.add_metric(sample.labels, value)  # type: ignore[attr-defined]
    elif family.type == MetricType.HISTOGRAM.value:
        ends = zip(map(str, DURATION_BUCKETS), value.within, strict=True)
        buckets = [*ends, ("+Inf", value.count)]
        family.add_metric(sample.labels, buckets, sum_value=value.seconds)  # type: ignore[attr-defined]
    else:
        family.add_metric(sample.labels, count_value=value.count, sum_value=value.seconds)  # type: ignore[attr-defined]


def render_text(read: Read) -> str:
    """The text format of Prometheus."""
    registry = _build_registry(read)
    from prometheus_client import generate_latest

    return generate_latest(registry).decode()


def write_textfile(read: Read, path: Path) -> None:
    """Replace the file in one step, so that node_exporter never reads half of one."""
    text = render_text(read)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        try:
            draft.write_text(text, encoding="utf-8")
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StorageRefused(
            f"the metrics were not written to {path}: {error.strerror}", state="the file is as it was",
            hint="expected a path in a directory that exists and may be written to",
        ) from error  # fmt: skip


@contextmanager
def serve_metrics(read: Read, address: str, on_error: Callable[[ErrataError], None]) -> Iterator[str]:
    """Answer GET /metrics at ``HOST:PORT`` until the block ends; gives the address, with a free port in place of 0."""
    host, port = parse_address(address)
    registry = _build_registry(read, on_error)
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise UsageError(
            f"--serve {address} was refused: {error.strerror or error}", state="nothing is served",
            hint="another process may have the port; expected HOST:PORT, such as 127.0.0.1:9464",
        ) from error  # fmt: skip
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def parse_address(text: str) -> tuple[str, int]:
    """Host and port.

    >>> parse_address("127.0.0.1:9464"), parse_address("[::1]:9464")
    (('127.0.0.1', 9464), ('::1', 9464))
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise UsageError(f"--serve {text!r} was refused; expected HOST:PORT, such as 127.0.0.1:9464")
    return host, int(port)


def _build_registry(read: Read, on_error: Callable[[ErrataError], None] | None = None) -> CollectorRegistry:
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as missing:
        raise MissingDriver(
            "metrics need the package prometheus-client, which is not installed", state="nothing was changed",
            hint="pip install 'errata[metrics]'",
        ) from missing  # fmt: skip
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LedgerCollector(read, on_error))
    return registry
