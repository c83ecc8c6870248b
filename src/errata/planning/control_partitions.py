"""Control partitions: what the run's partitions are compared with, decided before anyone approves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from errata.model.partition import list_comparable
from errata.model.product import Product
from errata.ports.tables import ActiveRun, TargetState


def find_control_partitions(
    product: Product, partitions: Sequence[str], target: TargetState, others: Iterable[ActiveRun] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Per partition of the scope the comparable ones that hold rows, outside the scope and outside other active runs.

    As far as the widest rule reaches; a rule that reaches less far takes its own part of them.
    """
    if not product.control:
        return {}
    reach = max(rule.reach for rule in product.control)
    # what another run is about to replace is not what its readers trust
    left_out = set(partitions).union(*(run.partitions for run in others))
    usable = {name for name, size in target.partitions.items() if size.rows and name not in left_out}
    found = {
        name: tuple(other for other in list_comparable(product.target.grain, name, reach) if other in usable)
        for name in partitions
    }
    return {name: controls for name, controls in found.items() if controls}
