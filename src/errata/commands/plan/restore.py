"""Find what a restore puts back: an older snapshot of the target, or what `--restore-from` names.

That is another table, a copy in a warehouse or a source; rows of the last two are read from their recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from errata.errors import NotFound, PlanRefused
from errata.model.product import Input, Product
from errata.model.product.eras import cast_columns, eras_or_default
from errata.model.recording.copy_query import name_copy_source
from errata.model.recording.declaration import name_recording
from errata.model.recording.recorded_file import FileStatus, list_counted
from errata.planning.inputs.restore_origin import RestoreOrigin, match_columns, to_origin_product
from errata.planning.request import Request
from errata.planning.restore import INPUT, build_restore_input, to_restore_product
from errata.ports.tables import InputState, PastTarget, TargetState
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RestoredRows:
    """What a restore puts back, as an input, and where it is."""

    facts: InputState
    held: PastTarget | None = None  # the target itself
    origin: RestoreOrigin | None = None  # something else


def read_restore(
    workspace: Workspace, product: Product, request: Request, target: TargetState, partitions: Sequence[str]
) -> tuple[Product, RestoredRows]:
    """The product with what a restore puts back as its only input, and that input."""
    if request.restore_from is not None:
        source, origin, facts = _read_origin(workspace, product, request, target, partitions)
        return to_origin_product(product, source, origin.columns), RestoredRows(facts, origin=origin)
    column, grain = product.target.column, product.target.grain
    held = workspace.engines.history.held(product.target.table, column, grain, partitions, request.restore or "")
    product = to_restore_product(product, held.columns)
    return product, RestoredRows(build_restore_input(held, product, target), held)


def _read_origin(
    workspace: Workspace, product: Product, request: Request, target: TargetState, partitions: Sequence[str]
) -> tuple[Input, RestoreOrigin, InputState]:
    name = request.restore_from or ""
    if name in {copy.name for copy in product.target.copies} or name in workspace.project.sources:
        return _read_recording(workspace, product, request, target, partitions)
    if ":" in name or "." not in name:
        copies = ", ".join(copy.name for copy in product.target.copies) or "none"
        sources = ", ".join(sorted(workspace.project.sources)) or "none"
        raise NotFound(
            f"--restore-from {name} was refused; expected a table (catalog.namespace.table), a copy of {product.name} "
            f"({copies}) or a source of errata.yaml ({sources})",
            state="nothing was planned; no table was touched",
        )
    return _read_table(workspace, product, request, target, partitions)


def _read_table(
    workspace: Workspace, product: Product, request: Request, target: TargetState, partitions: Sequence[str]
) -> tuple[Input, RestoreOrigin, InputState]:
    table, column, grain = request.restore_from or "", product.target.column, product.target.grain
    if table == target.table:
        raise _refuse(request, "that is the target itself", f"errata plan {product.name} --restore WHEN …")
    there = workspace.engines.targets.read_target(table, column, grain, partitions)
    if there.base_snapshot_id is None:
        raise _refuse(request, f"{table} has no snapshot", "name a table that has rows")
    asked = request.restore or there.base_snapshot_id
    held = workspace.engines.history.held(table, column, grain, partitions, asked)
    types = {one.name: one.type for one in there.columns}
    columns, missing, problems = match_columns(target.columns, product.lineage_columns, types, held.columns)
    origin = RestoreOrigin(table, request.restore or table, columns, missing, (*held.problems, *problems))
    return Input(INPUT, table=table, partition=column), origin, build_restore_input(held, product, there)


def _read_recording(
    workspace: Workspace, product: Product, request: Request, target: TargetState, partitions: Sequence[str]
) -> tuple[Input, RestoreOrigin, InputState]:
    asked, grain = request.restore_from or "", product.target.grain
    name = asked if asked in workspace.project.sources else name_copy_source(asked)
    if request.restore is not None:
        raise _refuse(request, "recorded rows have no snapshots", f"errata recordings {asked} shows what there is")
    if not grain.is_time:
        raise _refuse(request, "recorded files are found by time, and the target has partitions by value", "")
    held = list_counted(workspace.ledger.recordings.list(name))
    if not any(one.status is FileStatus.ACCEPTED for one in held):
        raise _refuse(request, "nothing of it is recorded", f"errata record {asked} --from TIME --to TIME")
    there = set.intersection(*(set(one.columns) for one in held if one.columns)) if held else set()
    missing = tuple(
        one.name
        for one in target.columns
        if one.name in product.lineage_columns and one.name not in there and not one.required
    )
    columns = {one.name: one.type for one in target.columns if one.name not in missing}
    source = workspace.project.sources.get(name)
    eras = eras_or_default(())
    if source is None or source.is_untyped:
        eras = tuple(cast_columns(era, columns) for era in eras)
    found = Input(INPUT, recording=name, partition=product.target.column, columns=columns, eras=eras)
    origin = RestoreOrigin(name_recording(name), asked, {one: one for one in columns}, missing)
    return found, origin, workspace.engines.inputs.read_input(found, grain, partitions)


def _refuse(request: Request, why: str, hint: str) -> PlanRefused:
    return PlanRefused(
        f"--restore-from {request.restore_from} was refused; {why}",
        state="nothing was planned; no table was touched",
        hint=hint or "errata plan --help",
    )
