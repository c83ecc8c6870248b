"""`errata stale`: which partitions no longer follow from their inputs, and why. Starts no JVM, changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.errors import ErrataError
from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import Grain
from errata.model.product import Product
from errata.planning.request import resolve_scope
from errata.staleness.judgement import STALE, WAITING, Judgement, Reason
from errata.staleness.products import JudgedProduct, judge_products
from errata.views.stale import StalePartitionView, StaleProductView, StaleReasonView, StaleView
from errata.workspace import Workspace


def show_stale(
    workspace: Workspace,
    name: str | None,
    start: str | None = None,
    end: str | None = None,
    partitions: str | Sequence[str] | None = None,
) -> StaleView:
    """Judge one product, or all of them; of all, one that cannot be looked at does not hide the others."""
    if name is not None:
        product = workspace.product(name)
        scope = resolve_scope(product.target.grain, start, end, partitions)
        return build_view([read_stale(workspace, name, scope)])
    found: list[JudgedProduct | StaleProductView] = []
    for product in workspace.project.products.values():
        try:
            found.append(read_stale(workspace, product.name, None))
        except ErrataError as error:
            found.append(_build_summary(product, (), problem=error.message))
    return build_view(found)


def read_stale(workspace: Workspace, name: str, scope: Sequence[str] | None) -> JudgedProduct:
    """Judge a product; a project without a ledger has nothing on record."""
    with workspace.ledger.or_empty() as ledger:
        return judge_products(replace(workspace, ledger=ledger), [name], scope)[name]


def build_view(found: Sequence[JudgedProduct | StaleProductView]) -> StaleView:
    """Products with their partitions, as people and programs read them."""
    products = [one if isinstance(one, StaleProductView) else _build_summary(one.product, one.judged) for one in found]
    return StaleView(
        ok=not any(one.stale or one.problem for one in products),
        products=tuple(products),
        partitions=tuple(
            _build_partition(one.product, judged)
            for one in found
            if isinstance(one, JudgedProduct)
            for judged in one.judged
        ),
    )


def _build_summary(product: Product, judged: Sequence[Judgement], problem: str = "") -> StaleProductView:
    states = [one.state for one in judged]
    can_plan = any(one.state == STALE and is_plannable(one) for one in judged)
    return StaleProductView(
        product=product.name,
        table=product.target.table,
        grain=product.target.grain.value,
        partitions=len(judged),
        stale=states.count(STALE),
        waiting=states.count(WAITING),
        problem=problem,
        next=f'errata plan {product.name} --stale --reason "late data"' if can_plan else "",
    )


def is_plannable(one: Judgement) -> bool:
    """Whether computing a stale partition again helps: not while it only follows products that are stale themselves."""
    return any(reason.parent is None for reason in one.reasons)


def _build_partition(product: Product, one: Judgement) -> StalePartitionView:
    reasons = tuple(_build_reason(product, reason) for reason in one.reasons)
    return StalePartitionView(product.name, one.partition, one.state, one.basis, reasons)


def _build_reason(product: Product, reason: Reason) -> StaleReasonView:
    grain = _find_grain(product, reason.input)
    return StaleReasonView(
        reason.input, reason.basis, reason.text(grain), reason.event, reason.partitions, reason.parent
    )


def _find_grain(product: Product, name: str | None) -> Grain:
    source = next((one for one in product.inputs if one.name == name), None)
    return rule_of_input(source, product.target.grain).input_grain if source else product.target.grain
