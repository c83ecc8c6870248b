"""Which products read the table of another, and which of their partitions a change touches. Pure.

A touched partition is one that is computed from a changed one, directly or through other products; whether it exists is
another question. Where the mapping cannot be derived, all partitions are touched, and the reason is part of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from errata.errors import UsageError
from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import NULL, sort_oldest_first
from errata.model.product import Input, Product


@dataclass(frozen=True, slots=True)
class Edge:
    """A product that reads what another publishes."""

    parent: Product
    child: Product
    source: Input


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """Partitions of one product: some by name, every one from a partition on, or all."""

    names: frozenset[str] = frozenset()
    since: str | None = None
    is_all: bool = False

    def union(self, other: PartitionSet) -> PartitionSet:
        """Partitions that are in one of both."""
        starts = [start for start in (self.since, other.since) if start is not None]
        return PartitionSet(self.names | other.names, min(starts, default=None), self.is_all or other.is_all)

    def contains(self, name: str) -> bool:
        """Whether a partition is in it."""
        return self.is_all or name in self.names or (self.since is not None and name != NULL and name >= self.since)


@dataclass(frozen=True, slots=True)
class Reading:
    """One input through which a product is touched."""

    input: str
    product: str  # whose table it is
    because: str = ""  # why all partitions are touched, or what has to happen first


@dataclass(frozen=True, slots=True)
class Touched:
    """A product with the partitions that a change touches."""

    product: Product
    partitions: PartitionSet
    readings: tuple[Reading, ...]


def list_edges(products: Iterable[Product]) -> tuple[Edge, ...]:
    """Every input that is the table of a product of the project; own output of a product is no edge."""
    known = list(products)
    made: dict[str, list[Product]] = {}
    for product in known:
        for table in list_published_tables(product):
            made.setdefault(table, []).append(product)
    return tuple(
        Edge(parent, child, source)
        for child in known
        for source in child.inputs
        if source.table is not None and not source.own
        for parent in made.get(source.table, ())
    )


def list_published_tables(product: Product) -> tuple[str, ...]:
    """The tables and views in which readers find a product, the target first."""
    publish = product.publish
    found = (product.target.table, publish.view, publish.versions, publish.corrections)
    return tuple(dict.fromkeys(name for name in found if name))


def list_parents_first(products: Iterable[Product]) -> tuple[Product, ...]:
    """Products by name, each after those that it reads; cycles are left as they are."""
    known = sorted(products, key=lambda one: one.name)
    parents: dict[str, list[str]] = {}
    for edge in list_edges(known):
        parents.setdefault(edge.child.name, []).append(edge.parent.name)
    placed: dict[str, Product] = {}
    by_name = {one.name: one for one in known}

    def place(name: str, above: frozenset[str]) -> None:
        for parent in parents.get(name, ()):
            if parent not in placed and parent not in above:
                place(parent, above | {parent})
        placed.setdefault(name, by_name[name])

    for one in known:
        place(one.name, frozenset({one.name}))
    return tuple(placed.values())


def find_cycles(products: Iterable[Product]) -> tuple[tuple[Edge, ...], ...]:
    """Cycles of products, each computed from the one before it; no cycle shares its last edge with another."""
    edges = {(edge.parent.name, edge.child.name): edge for edge in reversed(list_edges(products))}
    found: list[tuple[Edge, ...]] = []
    while True:
        parents: dict[str, list[str]] = {}
        for parent, child in edges:
            parents.setdefault(child, []).append(parent)
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            names = _rotate(error.args[1][:-1])
            cycle = [edges[pair] for pair in zip(names, [*names[1:], names[0]], strict=True)]
            found.append(tuple(cycle))
            del edges[cycle[-1].parent.name, cycle[-1].child.name]
        else:
            return tuple(found)


def _rotate(names: Sequence[str]) -> list[str]:
    """A cycle from its first name in the alphabet on, so that it is always written in the same way."""
    at = names.index(min(names))
    return [*names[at:], *names[:at]]


def describe_cycle(cycle: Sequence[Edge]) -> str:
    """A cycle as people read it: each product is read by the next."""
    return " → ".join([edge.parent.name for edge in cycle] + [cycle[0].parent.name])


def trace_impact(products: Mapping[str, Product], root: str, partitions: Sequence[str]) -> tuple[Touched, ...]:
    """Products that a change of these partitions touches, each after those that it reads.

    The changed product itself is among them if it reads its own output, with its later partitions. Raises
    ``UsageError`` if products form a cycle.
    """
    if cycles := find_cycles(products.values()):
        raise UsageError(
            f"the products {describe_cycle(cycles[0])} form a cycle; expected none to be computed from itself",
            hint="errata check",
        )
    into: dict[str, list[Edge]] = {}
    for edge in list_edges(products.values()):
        into.setdefault(edge.child.name, []).append(edge)
    order = TopologicalSorter({name: {edge.parent.name for edge in into.get(name, ())} for name in products})
    changed = PartitionSet(frozenset(partitions))
    reached: dict[str, PartitionSet] = {root: changed.union(_find_later(products[root], changed))}
    found: list[Touched] = []
    if reached[root] != changed:
        own = next(source.name for source in products[root].inputs if source.own)
        found.append(Touched(products[root], _find_later(products[root], changed), (Reading(own, root),)))
    for name in order.static_order():
        edges = [edge for edge in into.get(name, ()) if edge.parent.name in reached and name != root]
        if not edges:
            continue
        mapped = [_map_partitions(edge, reached[edge.parent.name]) for edge in edges]
        total = PartitionSet()
        for part, _ in mapped:
            total = total.union(part)
        reached[name] = total.union(_find_later(products[name], total))
        found.append(Touched(products[name], reached[name], tuple(reading for _, reading in mapped)))
    return tuple(found)


def _find_later(product: Product, changed: PartitionSet) -> PartitionSet:
    """Partitions that build on changed ones through the product's own output: every later one."""
    own = next((source for source in product.inputs if source.own), None)
    if own is None or changed.is_all:
        return PartitionSet()
    first = rule_of_input(own, product.target.grain).list_touched([*changed.names, *_list_start(changed)])
    return PartitionSet(since=next(iter(first), None))


def _list_start(partitions: PartitionSet) -> list[str]:
    return [partitions.since] if partitions.since is not None else []


def _map_partitions(edge: Edge, changed: PartitionSet) -> tuple[PartitionSet, Reading]:
    """What a change of the parent touches in the child."""
    why = find_obstacle(edge)
    if not why and changed.is_all:
        why = f"all of {edge.parent.name} is touched"
    if why:
        return PartitionSet(is_all=True), Reading(edge.source.name, edge.parent.name, why)
    rule, grain = rule_of_input(edge.source, edge.child.target.grain), edge.parent.target.grain
    names = frozenset(rule.list_touched(sort_oldest_first(grain, changed.names), grain))
    since = next(iter(rule.list_touched(_list_start(changed), grain)), None)
    tag = edge.source.version
    later = f"it reads the tag {tag}, so it is touched when the tag moves" if tag else ""
    return PartitionSet(names, since), Reading(edge.source.name, edge.parent.name, later)


def find_obstacle(edge: Edge) -> str:
    """Why the partitions that read a changed one cannot be derived; empty if they can."""
    parent, source, child = edge.parent, edge.source, edge.child
    if source.table in (parent.publish.versions, parent.publish.corrections):
        return f"input {source.name} reads {source.table}, which is not partitioned like {parent.target.table}"
    if source.partition is None:
        return f"input {source.name} is read whole"
    if source.partition != parent.target.column:
        return f"input {source.name} is read by {source.partition}, and {parent.name} has partitions of " + (
            parent.target.column
        )
    if parent.target.zone != child.target.zone:
        return f"{parent.name} has days of {parent.target.zone}, and {child.name} days of {child.target.zone}"
    grain = source.grain or child.target.grain
    if grain.is_time != parent.target.grain.is_time:
        return f"input {source.name} is read by {grain}, and {parent.name} has partitions by {parent.target.grain}"
    return ""
