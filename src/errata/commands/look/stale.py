"""`errata stale`: which partitions no longer follow from their inputs, and why. Starts no JVM, changes no data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from errata.approval.reservations import list_reservations
from errata.errors import ErrataError
from errata.ledger.figures.readings import Reading, ReadingName
from errata.model.graph.product_graph import list_parents_first
from errata.model.graph.read_rule import rule_of_input
from errata.model.kind import find_kind
from errata.model.partition import Grain, format_partition_list
from errata.model.product import Product
from errata.model.run import ACTIVE
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
        judged = read_stale(workspace, name, scope)
        if scope is None:
            keep_reading(workspace, judged)
        return build_view(workspace, [judged])
    found: list[JudgedProduct | StaleProductView] = []
    for product in list_parents_first(workspace.project.products.values()):
        try:
            found.append(judged := read_stale(workspace, product.name, None))
            keep_reading(workspace, judged)
        except ErrataError as error:
            found.append(_build_summary(product, (), problem=error.message))
    return build_view(workspace, found)


def keep_reading(workspace: Workspace, found: JudgedProduct) -> None:
    """Keep for metrics how many partitions of the whole product are stale."""
    stale = sum(one.state == STALE for one in found.judged)
    # a look is worth the same when nobody may write to the ledger, or there is none
    with suppress(ErrataError):
        workspace.ledger.readings.put(Reading(ReadingName.STALE, found.product.name, stale))


def read_stale(workspace: Workspace, name: str, scope: Sequence[str] | None) -> JudgedProduct:
    """Judge a product; a project without a ledger has nothing on record."""
    return read_stale_with_parents(workspace, name, scope)[name]


def read_stale_with_parents(
    workspace: Workspace, name: str, scope: Sequence[str] | None
) -> dict[str, JudgedProduct]:  # fmt: skip
    """The same with the products that it is computed from, parents first."""
    with workspace.ledger.or_empty() as ledger:
        return judge_products(replace(workspace, ledger=ledger), [name], scope)


def build_view(workspace: Workspace, found: Sequence[JudgedProduct | StaleProductView]) -> StaleView:
    """Products with their partitions, as people and programs read them."""
    products = [
        one
        if isinstance(one, StaleProductView)
        else _build_summary(one.product, one.judged, next_step=_suggest_step(workspace, one))
        for one in found
    ]
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


def _build_summary(
    product: Product, judged: Sequence[Judgement], *, problem: str = "", next_step: str = ""
) -> StaleProductView:
    states = [one.state for one in judged]
    return StaleProductView(
        product=product.name,
        table=product.target.table,
        grain=product.target.grain.value,
        partitions=len(judged),
        stale=states.count(STALE),
        waiting=states.count(WAITING),
        problem=problem,
        next=next_step,
    )


def _suggest_step(workspace: Workspace, found: JudgedProduct) -> str:
    """The command that plans what is stale; of partitions that an active run or campaign has, the one that shows it."""
    product, stale = found.product, list_plannable(found)
    if not stale:
        return ""
    claimed = list_claimed(workspace, product, stale)
    held = {name for names in claimed.values() for name in names}
    rest = [name for name in stale if name not in held]
    if not rest:
        return f"errata status {next(iter(claimed))}"
    part = f" --partitions {format_partition_list(product.target.grain, rest)}" if held else ""
    return f'errata plan {product.name} --stale{part} --reason "late data"'


def list_plannable(found: JudgedProduct) -> tuple[str, ...]:
    """Stale partitions that a run makes current."""
    return tuple(one.partition for one in found.judged if one.state == STALE and is_plannable(one))


def list_claimed(workspace: Workspace, product: Product, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Active runs and approved campaigns that have some of these partitions."""
    wanted = set(names)
    with workspace.ledger.or_empty() as ledger:
        here = replace(workspace, ledger=ledger)
        runs = [run for run in ledger.runs.list(states=ACTIVE) if run.table == product.target.table]
        found = {run.run_id: run.partitions for run in runs if find_kind(run.kind or "").changes_table}
        found |= {one.campaign_id: one.partitions for one in list_reservations(here, product.target.table)}
    shared = {name: tuple(one for one in held if one in wanted) for name, held in found.items()}
    return {name: held for name, held in shared.items() if held}


def is_plannable(one: Judgement) -> bool:
    """Whether computing a stale partition again helps: not while it only follows products that are stale themselves."""
    return any(reason.parent is None for reason in one.reasons)


def _build_partition(product: Product, one: Judgement) -> StalePartitionView:
    reasons = tuple(_build_reason(product, reason) for reason in one.reasons)
    return StalePartitionView(product.name, one.partition, one.state, one.basis, reasons)


def _build_reason(product: Product, reason: Reason) -> StaleReasonView:
    grain = _find_grain(product, reason.input)
    return StaleReasonView(
        reason.input, reason.basis, reason.text(grain), reason.event, reason.partitions, reason.parent,
        (reason.grain or grain).value,
    )  # fmt: skip


def _find_grain(product: Product, name: str | None) -> Grain:
    source = next((one for one in product.inputs if one.name == name), None)
    return rule_of_input(source, product.target.grain).input_grain if source else product.target.grain
