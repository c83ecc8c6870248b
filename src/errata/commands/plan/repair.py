"""What a repair of copies replaces: read from lake, copies and ledger when it is planned. Only reads."""

from __future__ import annotations

from collections.abc import Sequence

from errata.canonical import canonical_bytes, sha256
from errata.delivery.copies.accepted_rows import AcceptedPartition, open_accepted_rows, read_acceptance
from errata.delivery.copies.lake_comparison import ComparedPartitions, compare_with_lake
from errata.errors import UsageError
from errata.model.copy.checksum import EMPTY
from errata.model.copy.declaration import REFRESH, Copy
from errata.model.copy.marker import Content
from errata.model.copy.partition_comparison import DIFFERING, Comparison
from errata.model.copy.repair import CopyRepair, RepairedPartition
from errata.model.product import Product
from errata.planning.request import Request
from errata.workspace import Workspace


def draft_repairs(
    workspace: Workspace, product: Product, request: Request, snapshot_id: str | None, partitions: Sequence[str]
) -> tuple[tuple[CopyRepair, ...], dict[str, bytes]]:
    """Repairs of the copies that differ from what is accepted, and their parts by digest; none unless asked for."""
    found, parts = list[CopyRepair](), dict[str, bytes]()
    for declared in _choose_copies(product, request) if request.copies is not None else ():
        compared = compare_with_lake(workspace, product, declared, snapshot_id, partitions)
        sealed = _seal_partitions(workspace, product, compared, snapshot_id or "")
        if sealed:
            content = canonical_bytes({name: one.to_dict() for name, one in sealed.items()})
            parts[sha256(content)] = content
            copy_rows, lake_rows = (
                sum(one.found.rows for one in sealed.values()),
                sum(one.accepted.checksum.rows for one in sealed.values()),
            )
            name, shape = declared.name, compared.copy.shape
            found.append(CopyRepair(name, tuple(sealed), shape, copy_rows, lake_rows, sha256(content)))
    return tuple(found), parts


def _choose_copies(product: Product, request: Request) -> list[Copy]:
    known = {one.name: one for one in product.target.copies if one.mode != REFRESH}
    if wrong := [name for name in request.copies or () if name not in known]:
        raise UsageError(
            f"--copy {wrong[0]} was refused; expected one of {', '.join(known) or 'none'}", state="nothing was planned"
        )
    return [known[name] for name in request.copies or known]


def _seal_partitions(
    workspace: Workspace, product: Product, compared: ComparedPartitions, snapshot_id: str
) -> dict[str, RepairedPartition]:
    """Partitions that differ, oldest first; those that only a baseline covers have nothing accepted to go back to."""
    table, names = product.target.table, compared.list(*DIFFERING)
    accepted = {}
    for name, one in read_acceptance(workspace, table, names).items():
        # the plan tags main's snapshot, which has the same rows where the lake has not moved on
        is_live = compared.found[name] is Comparison.CHANGED
        accepted[name] = AcceptedPartition(one.sequence, snapshot_id if is_live else one.snapshot_id, one.publication)
    if not accepted:
        return {}
    rows = open_accepted_rows(workspace.engines.lake_rows, compared.copy, table, accepted).measure()
    delivered, copy = compared.measured.delivered, compared.measured.copy
    return {
        name: RepairedPartition(
            copy.get(name, EMPTY),
            Content(accepted[name].sequence, rows.get(name, EMPTY)),
            accepted[name].snapshot_id,
            accepted[name].publication,
            delivered[name].marker if name in delivered else None,
        )
        for name in names
        if name in accepted
    }
