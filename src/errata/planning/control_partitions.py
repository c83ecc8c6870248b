"""Choose the control partitions that a run's partitions are compared with, before the plan is approved. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from errata.model.partition import list_comparable
from errata.model.product import Product
from errata.ports.tables import ActiveRun, TargetState


def find_control_partitions(
    product: Product, partitions: Sequence[str], target: TargetState, others: Iterable[ActiveRun] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Comparable partitions for each partition in scope: they hold rows and are in neither the scope nor another run.

    Covers the reach of the widest rule; a rule with a shorter reach uses a subset.
    """
    reaches = list_control_reaches(product)
    if not reaches:
        return {}
    reach = max(reaches)
    # another run is about to replace these rows, so they are no trustworthy reference
    left_out = set(partitions).union(*(run.partitions for run in others))
    usable = {name for name, size in target.partitions.items() if size.rows and name not in left_out}
    found = {
        name: tuple(other for other in list_comparable(product.target.grain, name, reach) if other in usable)
        for name in partitions
    }
    return {name: controls for name, controls in found.items() if controls}


def list_control_reaches(product: Product) -> tuple[int, ...]:
    """How far each rule that compares with control partitions reaches; empty if no rule does."""
    beside = (rule.reach for rule in product.distribution if rule.against == "control")
    return (*(rule.reach for rule in product.control), *beside)
