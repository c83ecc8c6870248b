"""Which products a campaign corrects, in which order, and which partitions of them. Pure.

A product that is left out takes with it the products that it alone connects to the correction: nothing that they read
changes. A product that stays reads one that was left out as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from errata.errors import NotFound, UsageError
from errata.model.campaign.campaign_manifest import LeftOut
from errata.model.graph.product_graph import Edge, PartitionSet, find_obstacle, list_edges, trace_impact
from errata.model.product import READ_AT_ITS_TIME, Product
from errata.model.side_tables import is_side_table_mode

_STATE = "nothing was planned"


@dataclass(frozen=True, slots=True)
class ChosenMember:
    """A product of the campaign with what is touched of it; the table says which of these partitions there are."""

    product: Product
    touched: PartitionSet
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The members in order, the first being where the correction begins, and what is left out."""

    members: tuple[ChosenMember, ...]
    left_out: tuple[LeftOut, ...]


def choose_members(
    products: Mapping[str, Product],
    root: str,
    scope: Sequence[str],
    *,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
    empty: Sequence[str] = (),
) -> Choice:
    """Members of a campaign; ``empty`` are products that have none of the touched partitions.

    Raises ``NotFound`` or ``UsageError`` for a cycle, a name that is no member, and a member whose partitions cannot be
    derived.
    """
    names = [one.product.name for one in trace_impact(products, root, scope) if one.product.name != root]
    for option, given in (("--only", only or ()), ("--except", without)):
        _refuse_unknown(option, given, names, root, products)
    kept = {root, *(names if only is None else only)} - set(without) - set(empty)
    reached = _trace(products, kept, root, scope)
    if only is not None and (cut := [name for name in only if name not in reached and name not in empty]):
        between = sorted(set(_list_parents(products, cut[0])) & set(names) - set(only))
        raise UsageError(
            f"--only {','.join(only)} was refused; {cut[0]} reads {root} only through {' or '.join(between)}",
            state=_STATE,
            hint=f"--only {','.join([*only, *between[:1]])}",
        )
    left = [_explain(name, names, reached, only, without, empty) for name in names if name not in reached]
    edges = [edge for edge in list_edges(products.values()) if {edge.parent.name, edge.child.name} <= reached.keys()]
    for edge in edges:
        if why := _find_obstacle(edge):
            raise UsageError(
                f"{edge.child.name} cannot be a member; which of its partitions follow from {edge.parent.name} cannot "
                f"be derived: {why}",
                state=_STATE,
                hint=f"plan without it: --except {edge.child.name}; then plan {edge.child.name} on its own",
            )
    parents = {name: tuple(dict.fromkeys(e.parent.name for e in edges if e.child.name == name)) for name in reached}
    return Choice(
        tuple(ChosenMember(products[name], touched, parents[name]) for name, touched in reached.items()), tuple(left)
    )


def find_later(products: Mapping[str, Product], root: str, scope: Sequence[str]) -> PartitionSet | None:
    """Later partitions of the product itself that follow from these, if it reads its own output."""
    touched = trace_impact({root: products[root]}, root, scope)
    return touched[0].partitions if touched else None


def _trace(
    products: Mapping[str, Product], kept: set[str], root: str, scope: Sequence[str]
) -> dict[str, PartitionSet]:  # fmt: skip
    """Kept products that are reached through kept ones alone, in order, with what is touched of them."""
    inside = {name: product for name, product in products.items() if name in kept}
    found = {root: PartitionSet(frozenset(scope))}
    found |= {
        one.product.name: one.partitions for one in trace_impact(inside, root, scope) if one.product.name != root
    }  # fmt: skip
    return found


def _refuse_unknown(
    option: str, given: Sequence[str], names: Sequence[str], root: str, products: Mapping[str, Product]
) -> None:
    for name in given:
        if name in names:
            continue
        listed = ", ".join(names) or "no product reads it"
        if name in products:
            why = "is where the correction begins" if name == root else f"does not read {root}"
            raise UsageError(f"{option} {name} was refused; {name} {why}; members: {listed}", state=_STATE)
        near = get_close_matches(name, names, 1)
        raise NotFound(
            f"{option} {name} was refused; it is not a product of this project; members: {listed}",
            state=_STATE,
            hint=f"did you mean {near[0]}?" if near else f"errata impact {root} --from D --to D",
        )


def _list_parents(products: Mapping[str, Product], name: str) -> list[str]:
    return [edge.parent.name for edge in list_edges(products.values()) if edge.child.name == name]


def _explain(
    name: str,
    names: Sequence[str],
    reached: Mapping[str, PartitionSet],
    only: Sequence[str] | None,
    without: Sequence[str],
    empty: Sequence[str],
) -> LeftOut:
    if name in empty:
        return LeftOut(name, "its table has none of the partitions that follow")
    if name in without or (only is not None and name not in only):
        return LeftOut(name, "as asked; it stays as it is")
    missing = [one for one in names if one not in reached and one != name]
    return LeftOut(name, f"it reads the correction only through {' and '.join(missing)}")


def _find_obstacle(edge: Edge) -> str:
    """Why a child cannot follow its parent in a campaign; empty if it can."""
    source, parent = edge.source, edge.parent
    if why := find_obstacle(edge):
        return why
    if source.version is not None:
        return f"input {source.name} reads the tag {source.version}, which a publication does not move"
    if source.reference in READ_AT_ITS_TIME:
        return f"input {source.name} is read {source.reference}, as the table was before the correction"
    if source.table != parent.target.table or is_side_table_mode(parent.publish):
        return f"{parent.name} publishes beside {parent.target.table}, and what reads that table stays as it is"
    return ""
