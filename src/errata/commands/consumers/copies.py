"""`errata copies check`: compare the copies of a product with the lake. Changes nothing, starts no JVM."""

from __future__ import annotations

from collections.abc import Sequence

from errata.delivery.copies.lake_comparison import ComparedPartitions, compare_with_lake
from errata.errors import ErrataError, NotFound
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.copy.checksum import EMPTY
from errata.model.copy.declaration import REFRESH
from errata.model.copy.partition_comparison import DIFFERING, Comparison
from errata.model.partition import format_partition_list, sort_oldest_first
from errata.model.product import Product
from errata.planning.request import resolve_scope
from errata.views.copies import CheckedCopy, CopiesCheckView, DifferingPartition
from errata.workspace import Workspace


def check_copies(
    workspace: Workspace, name: str, start: str | None, end: str | None, partitions: str | Sequence[str] | None
) -> CopiesCheckView:
    """Compare each copy with main as it is now: these partitions, or all that were delivered."""
    product = workspace.product(name)
    # one that reads the lake itself has no rows of its own
    declared = [one for one in product.target.copies if one.mode != REFRESH]
    if not declared:
        raise NotFound(
            f"{name} has no copy with rows of its own", state="nothing was changed", hint="declare target.copies"
        )
    scope, target = resolve_scope(product.target.grain, start, end, partitions), product.target
    main = workspace.engines.targets.read_target(target.table, target.column, target.grain, ())
    checked: list[CheckedCopy] = []
    for one in declared:
        try:
            compared = compare_with_lake(workspace, product, one, main.base_snapshot_id, scope)
        except ErrataError as error:
            # the others are still of interest
            checked.append(CheckedCopy(one.warehouse, one.table, error=error.message))
        else:
            checked.append(_describe(compared, _find_waiver(workspace, target.table, one.name)))
    return CopiesCheckView(
        product=name,
        grain=target.grain.value,
        snapshot_id=main.base_snapshot_id,
        copies=tuple(checked),
        ok=not any(one.differing or one.error for one in checked),
        next=_suggest(product, checked),
    )


def _describe(compared: ComparedPartitions, waived_by: str | None) -> CheckedCopy:
    lake, copy = compared.measured.lake, compared.measured.copy
    differing = tuple(
        DifferingPartition(name, lake.get(name, EMPTY).rows, copy.get(name, EMPTY).rows, compared.found[name].value)
        for name in compared.list(*DIFFERING)
    )
    return CheckedCopy(
        compared.copy.warehouse,
        compared.copy.table,
        checked_count=len(compared.list(Comparison.SAME, *DIFFERING)),
        differing=differing,
        moved_on=compared.list(Comparison.MOVED_ON),
        unknown=compared.list(Comparison.UNKNOWN),
        waived_by=waived_by,
    )


def _find_waiver(workspace: Workspace, table: str, copy: str) -> str | None:
    """Who waived a delivery to this copy last."""
    if not workspace.ledger.exists():
        return None
    items = workspace.ledger.outbox.list(table=table, states=[ItemState.WAIVED])
    mine = [one.waived_by for one in items if one.effect is Effect.COPY and one.consumer == copy]
    return mine[-1] if mine else None


def _suggest(product: Product, checked: Sequence[CheckedCopy]) -> tuple[str, ...]:
    """A planned repair of what others changed; a delivery of what has not arrived."""
    found = [(copy, one) for copy in checked for one in copy.differing]
    changed = {one.partition for _, one in found if one.why == Comparison.CHANGED}
    steps = [f"errata deliver {product.name}"] if any(one.why == Comparison.UNDELIVERED for _, one in found) else []
    if changed:
        grain = product.target.grain
        listed = format_partition_list(grain, sort_oldest_first(grain, changed))
        steps.append(f'errata plan {product.name} --kind repair --copies --partitions {listed} --reason "…"')
    return tuple(steps)
