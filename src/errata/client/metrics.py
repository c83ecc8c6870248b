"""Methods of the Client about metrics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from errata.client.open_project import OpenProject
from errata.commands import look
from errata.errors import ErrataError

if TYPE_CHECKING:
    from errata.views.metrics import MetricsFileView, MetricsView

LAST_RUNS = 20
"""Ended runs that keep their series, unless asked otherwise."""


class Metrics(OpenProject):
    """Values for Prometheus, from the ledger."""

    def metrics(self, *, last: int = LAST_RUNS) -> MetricsView:
        """Every metric with its values; ``last`` is how many ended runs keep their series.

        Example: client.metrics().metrics[0].values
        """
        return look.metrics.show_metrics(self._workspace, last)

    def metrics_text(self, *, last: int = LAST_RUNS) -> str:
        """The metrics in the text format of Prometheus.

        Example: print(client.metrics_text())
        """
        return look.metrics.print_metrics(self._workspace, last)

    def write_metrics(self, path: Path | str, *, last: int = LAST_RUNS) -> MetricsFileView:
        """Write the metrics to a file, replaced in one step, for node_exporter's textfile collector.

        Example: client.write_metrics("/var/lib/node_exporter/errata.prom")
        """
        return look.metrics.write_metrics(self._workspace, Path(path), last)

    def serve_metrics(
        self, address: str, *, last: int = LAST_RUNS, on_error: Callable[[ErrataError], None] | None = None
    ) -> AbstractContextManager[str]:
        """Answer scrapes at ``HOST:PORT`` while the block runs; gives the address, with a free port in place of 0.

        ``on_error`` is called when a scrape could not read the ledger.

        Example: with client.serve_metrics("127.0.0.1:9464") as address:
            wait_for_the_end()
        """
        return look.metrics.serve(self._workspace, address, last, on_error or _ignore)


def _ignore(_: ErrataError) -> None:
    """The metric says that the ledger is down."""
