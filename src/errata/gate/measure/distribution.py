"""Plan what distribution rules measure: quantiles as aggregates, and columns whose values are counted. Pure.

Quantiles are estimates: the value that is returned has a rank within :data:`RANK_ERROR` of the rows from the one that
was asked for. Up to 5,000 rows they are exact. All quantiles of a rule come from one sketch, because equal
aggregates are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from errata.gate.measure.names import quantile_measure, shares_measure
from errata.gate.rules.fit import refuse_distribution
from errata.model.manifest import Manifest
from errata.model.partition_sql import quoted

ACCURACY = 10_000
RANK_ERROR = Decimal(1) / ACCURACY
"""Share of the rows by which the rank of an estimated quantile may be off."""


@dataclass(frozen=True, slots=True)
class DistributionScan:
    """What distribution rules add to the scan of one table, by measurement."""

    quantiles: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, str] = field(default_factory=dict)

    @property
    def estimated(self) -> frozenset[str]:
        """Measurements that are estimates."""
        return frozenset(self.quantiles)


def build_distribution_scan(manifest: Manifest, against: str | None = None) -> DistributionScan:
    """What the rules need, all of them or those against this; raises ``UsageError`` naming one that does not fit."""
    quantiles: dict[str, str] = {}
    shares: dict[str, str] = {}
    for rule in manifest.distribution:
        if against is not None and rule.against != against:
            continue
        refuse_distribution(rule, manifest.target.columns)
        if rule.shares:
            shares[shares_measure(rule)] = rule.column
        every = f"APPROX_PERCENTILE({quoted(rule.column)}, ARRAY({', '.join(rule.quantiles)}), {ACCURACY})"
        for n, quantile in enumerate(rule.quantiles):
            quantiles[quantile_measure(rule, quantile)] = f"{every}[{n}]"
    return DistributionScan(quantiles, shares)
