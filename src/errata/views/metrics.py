"""The JSON of ``errata metrics``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value; of a histogram or summary the sum, with the count, and of a histogram the counts up to each end."""

    labels: Mapping[str, str]
    value: float
    count: int | None = None
    buckets: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric with its values."""

    name: str
    type: str  # counter | gauge | histogram | summary
    help: str
    values: tuple[MetricValue, ...]


@dataclass(frozen=True, slots=True)
class MetricsView:
    """Every metric that has a value."""

    metrics: tuple[MetricView, ...]


@dataclass(frozen=True, slots=True)
class MetricsFileView:
    """Where metrics were written."""

    file: str
