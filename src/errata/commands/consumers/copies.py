"""`errata copies check`: compare the copies of a product with the lake. Changes no data, starts no JVM."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from errata.commands.consumers.outbox import suggest_payment
from errata.delivery.copies.copy_delivery import REPAIR
from errata.delivery.copies.lake_comparison import ComparedPartitions, compare_with_lake
from errata.errors import ErrataError, NotFound
from errata.ledger.figures.readings import Reading, ReadingName
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
    accepted: set[str] = set()
    for one in declared:
        try:
            compared = compare_with_lake(workspace, product, one, main.base_snapshot_id, scope)
        except ErrataError as error:
            # the others are still of interest
            checked.append(CheckedCopy(one.warehouse, one.table, error=error.message))
        else:
            accepted |= compared.measured.accepted.keys()
            if scope is None:
                _keep_reading(workspace, product, compared)
            checked.append(_describe(compared, _find_waiver(workspace, target.table, one.name)))
    return CopiesCheckView(
        product=name,
        grain=target.grain.value,
        snapshot_id=main.base_snapshot_id,
        copies=tuple(checked),
        ok=not any(one.differing or one.error for one in checked),
        next=_suggest(workspace, product, checked, accepted),
    )


def _keep_reading(workspace: Workspace, product: Product, compared: ComparedPartitions) -> None:
    """Keep for metrics how many of all delivered partitions differ."""
    differing = len(compared.list(*DIFFERING))
    # a comparison is worth the same when nobody may write to the ledger, or there is none
    with suppress(ErrataError):
        workspace.ledger.readings.put(Reading(ReadingName.COPY_MISMATCH, product.name, differing, compared.copy.name))


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
        baseline=compared.list(Comparison.BASELINE),
        unknown=compared.list(Comparison.UNKNOWN),
        waived_by=waived_by,
    )


def _find_waiver(workspace: Workspace, table: str, copy: str) -> str | None:
    """Who waived a delivery to this copy last."""
    if not workspace.ledger.exists():
        return None
    items = workspace.ledger.outbox.list(table=table, states=[ItemState.WAIVED])
    mine = [
        one.waived_by
        for one in items
        if one.effect is Effect.COPY and one.consumer == copy and REPAIR not in one.payload
    ]
    return mine[-1] if mine else None


def _suggest(
    workspace: Workspace, product: Product, checked: Sequence[CheckedCopy], accepted: Collection[str]
) -> tuple[str, ...]:
    """A payment of what has not arrived; a planned repair of what others changed or a person gave up."""
    found = [(f"{copy.warehouse}:{copy.table}", one) for copy in checked for one in copy.differing]
    late = [(name, one.partition) for name, one in found if one.why == Comparison.UNDELIVERED]
    changed = {one.partition for _, one in found if one.why == Comparison.CHANGED}
    items = [
        item
        for item in (workspace.ledger.outbox.list_open(table=product.target.table) if late else ())
        if item.effect is Effect.COPY
        and any(name == item.consumer and partition in item.partitions for name, partition in late)
    ]
    owed = {(item.consumer, partition) for item in items for partition in item.partitions}
    repairable = (changed & set(accepted)) | {partition for name, partition in late if (name, partition) not in owed}
    steps = list(suggest_payment(items, product.name))
    grain = product.target.grain
    if repairable:
        listed = format_partition_list(grain, sort_oldest_first(grain, repairable))
        steps.append(f'errata plan {product.name} --kind repair --copies --partitions {listed} --reason "…"')
    if changed - set(accepted):
        # nothing was accepted that a repair could bring back
        listed = format_partition_list(grain, sort_oldest_first(grain, changed - set(accepted)))
        steps.append(f"errata deliver {product.name} --baseline --partitions {listed}")
    return tuple(steps)
