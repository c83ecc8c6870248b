"""Judge whole products: gather the facts, apply the rule, and carry staleness from parents to those that read them.

Reads the ledger, table metadata and listings; opens no data file, starts no JVM, changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from errata.errors import UsageError
from errata.model.graph.product_graph import Edge, describe_cycle, find_cycles, find_obstacle, list_edges
from errata.model.graph.read_rule import rule_of_input
from errata.model.kafka.topic_reads import describe_margin
from errata.model.partition import NULL, from_ordinals, sort_oldest_first, to_ordinal
from errata.model.product import Product
from errata.planning.inputs.completeness import list_waiting
from errata.planning.inputs.topic_rules import list_open_windows
from errata.ports.tables import InputState as ReadState
from errata.ports.tables import TargetState
from errata.staleness.claims import list_claims, read_code
from errata.staleness.judgement import (
    CURRENT,
    STALE,
    Facts,
    InputState,
    Judgement,
    Reason,
    add_waiting,
    find_changed_reads,
    find_own_reasons,
    judge_partition,
)
from errata.staleness.sources import (
    build_explainer,
    build_input_states,
    find_longest_run_ms,
    read_inputs,
    read_times,
    read_written,
)
from errata.workspace import Workspace

_MAX_GAP = 100_000


@dataclass(frozen=True, slots=True)
class JudgedProduct:
    """A product with the answer for each of its partitions, oldest first, and what its inputs hold."""

    product: Product
    judged: tuple[Judgement, ...]
    read: Mapping[str, ReadState] = field(default_factory=dict)

    @property
    def stale(self) -> tuple[str, ...]:
        """Partitions that are stale."""
        return tuple(one.partition for one in self.judged if one.state == STALE)


def judge_products(
    workspace: Workspace, names: Sequence[str], scope: Sequence[str] | None = None
) -> dict[str, JudgedProduct]:
    """The named products, and the products that they are computed from, each after those that it reads.

    ``scope`` limits the partitions of the named products; their parents are looked at as far as they are read.
    """
    products = workspace.project.products
    if cycles := find_cycles(products.values()):
        raise UsageError(
            f"the products {describe_cycle(cycles[0])} form a cycle; expected none to be computed from itself",
            hint="errata check",
        )
    edges = list_edges(products.values())
    into: dict[str, list[Edge]] = {}
    for edge in edges:
        into.setdefault(edge.child.name, []).append(edge)
    found: dict[str, JudgedProduct] = {}
    for name in _order(names, into):
        one = judge_product(workspace, products[name], scope if name in names else None)
        found[name] = add_parents(one, [(edge, found[edge.parent.name]) for edge in into.get(name, ())])
    return found


def _order(names: Iterable[str], into: Mapping[str, Sequence[Edge]]) -> list[str]:
    """These products and all that they are computed from, parents first."""
    needed: dict[str, set[str]] = {}
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name not in needed:
            needed[name] = {edge.parent.name for edge in into.get(name, ())}
            open_ += needed[name]
    return list(TopologicalSorter(needed).static_order())


def judge_product(workspace: Workspace, product: Product, scope: Sequence[str] | None = None) -> JudgedProduct:
    """One product by itself, without its parents."""
    target = workspace.engines.targets.read_target(
        product.target.table, product.target.column, product.target.grain, None
    )
    claims = list_claims(workspace, product, target)
    names = _list_partitions(product, target, claims, scope)
    # the target was read before the inputs, so that a change in between shows as one, and is not missed
    read = read_inputs(workspace, product, names)
    inputs = build_input_states(product, read)
    names = tuple(
        name for name in names if name in target.expected or name in claims or _has_input(product, inputs, name)
    )
    bare = Facts(product.target.grain, inputs, read_code(workspace, product), claims)
    written = read_written(workspace, product, target, [name for name in names if name not in claims])
    longest = find_longest_run_ms(product)
    known = [one.at_ms for one in written.values() if one.at_ms is not None]
    times = read_times(workspace, product, read, min(known) - longest) if known and longest is not None else {}
    facts = Facts(bare.grain, inputs, bare.code, claims, written, times, longest)
    explain = build_explainer(workspace, product, _list_changed(facts, names))
    judged = {name: judge_partition(name, facts, explain) for name in names}
    judged = _add_missing(product, target, judged, inputs, read)
    own = next((source for source in product.inputs if source.own), None)
    if own is not None:
        committed = _read_commit_times(workspace, product, target)
        judged = find_own_reasons(rule_of_input(own, product.target.grain), own.name, judged, committed)
    stale = [name for name, one in judged.items() if one.state == STALE]
    judged = add_waiting(judged, list_waiting(product, read, stale))
    judged = add_waiting(judged, list_open_windows(product, stale, workspace.now()))
    return JudgedProduct(product, tuple(judged[name] for name in names), read)


def _list_partitions(
    product: Product, target: TargetState, claims: Collection[str], scope: Sequence[str] | None
) -> tuple[str, ...]:
    """Partitions to judge: those asked for, or all that the table or the record has, and the gaps between them."""
    if scope is not None:
        return tuple(scope)
    grain = product.target.grain
    known = {*target.expected, *claims}
    dated = [to_ordinal(grain, name) for name in known - {NULL}] if grain.is_time else []
    if dated and max(dated) - min(dated) < _MAX_GAP:
        known |= from_ordinals(grain, range(min(dated), max(dated) + 1))
    return sort_oldest_first(grain, known)


def _has_input(product: Product, inputs: Mapping[str, InputState], partition: str) -> bool:
    """Whether an input has something that belongs to a partition, look-back and look-ahead aside."""
    return any(
        read in inputs[source.name].fingerprints
        for source in product.inputs
        if source.partition is not None and source.name in inputs
        for read in inputs[source.name].rule.without_look.list_reads([partition])
    )


def _list_changed(facts: Facts, names: Sequence[str]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for name in names:
        for claim in facts.claims.get(name, ()):
            for source, changed in find_changed_reads(claim, facts.inputs, name).items():
                snapshot = (claim.inputs or {})[source].snapshot_id
                found.setdefault((source, snapshot or ""), set()).update(changed)
    return found


def _add_missing(
    product: Product,
    target: TargetState,
    judged: Mapping[str, Judgement],
    inputs: Mapping[str, InputState],
    read: Mapping[str, ReadState],
) -> dict[str, Judgement]:
    """A partition that its table does not have, though its inputs do and nobody recorded why, was never computed."""
    return {
        name: Judgement(name, STALE, one.basis, (_explain_missing(product, name, one.basis, inputs, read),))
        if one.claim is None and name not in target.expected
        else one
        for name, one in judged.items()
    }


def _explain_missing(
    product: Product, name: str, basis: str, inputs: Mapping[str, InputState], read: Mapping[str, ReadState]
) -> Reason:
    """Why a partition should be there: an input has it, or has records near its time that may belong to it."""
    told = f"{product.target.table} has no such partition"
    held = [
        (source.name, one in read[source.name].near_only)
        for source in product.inputs
        if source.partition is not None and source.name in read
        for one in inputs[source.name].rule.without_look.list_reads([name])
        if one in inputs[source.name].fingerprints
    ]
    near = next((source for source, is_near in held if is_near), None)
    topic = inputs[near].topic if near is not None and all(is_near for _, is_near in held) else None
    if near is None or topic is None:
        return Reason(None, basis, f"{told}, though its inputs have")
    return Reason(near, basis, f"{told}; the topic {describe_margin(topic)}")


def _read_commit_times(workspace: Workspace, product: Product, target: TargetState) -> dict[str, int]:
    """When the newest live file of each partition was committed."""
    wanted = {one for each in target.writers.values() for one in each}
    commits = workspace.engines.history.find_commits(product.target.table, wanted)
    return {
        name: max((commits[one].at_ms for one in each if one in commits), default=0)
        for name, each in target.writers.items()
    }


def add_parents(child: JudgedProduct, parents: Sequence[tuple[Edge, JudgedProduct]]) -> JudgedProduct:
    """The product with the partitions that read stale ones of another product."""
    judged = {one.partition: one for one in child.judged}
    for edge, parent in parents:
        wrong = {one.partition: one for one in parent.judged if one.state != CURRENT}
        for name, reads in _map_to_child(edge, wrong, judged).items():
            first, why = wrong[reads[0]], find_obstacle(edge)
            event = f"of {parent.product.name} is {first.state}{f'; {why}' if why else ''}"
            judged[name] = judged[name].add(
                Reason(
                    edge.source.name,
                    first.basis,
                    event,
                    sort_oldest_first(edge.parent.target.grain, reads),
                    parent.product.name,
                    edge.parent.target.grain,
                )
            )
    return JudgedProduct(child.product, tuple(judged[one.partition] for one in child.judged), child.read)


def _map_to_child(edge: Edge, wrong: Collection[str], names: Collection[str]) -> dict[str, list[str]]:
    """Partitions of a child that read these of its parent, each with those that it reads."""
    if find_obstacle(edge) and wrong:
        return {name: list(wrong) for name in names}
    rule, grain = rule_of_input(edge.source, edge.child.target.grain), edge.parent.target.grain
    found: dict[str, list[str]] = {}
    for one in wrong:
        for name in rule.list_touched([one], grain):
            if name in names:
                found.setdefault(name, []).append(one)
    return found
