"""`errata impact`: what reads some partitions of a product, directly or through others. Starts no JVM."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from errata.errors import ErrataError, UsageError
from errata.model.graph.dbt_graph import DbtManifest, DbtReader, is_exposure
from errata.model.graph.product_graph import PartitionSet, Touched, list_published_tables, trace_impact
from errata.model.partition import sort_oldest_first
from errata.model.product import Product, Project
from errata.planning.request import resolve_scope
from errata.views import DbtModelView, ExposureView, ImpactView, ReadingView, TellView, TouchedView
from errata.workspace import Workspace


def show_impact(
    workspace: Workspace,
    name: str,
    start: str | None,
    end: str | None,
    partitions: str | Sequence[str] | None,
) -> ImpactView:
    """What a change of these partitions touches, looked up in the tables of the touched products."""
    product = workspace.product(name)
    scope = resolve_scope(product.target.grain, start, end, partitions)
    if scope is None:
        raise UsageError(
            "an impact without a scope was refused; expected --from and --to, or --partitions",
            hint=f"errata impact {name} --from D --to D",
        )
    manifest = workspace.engines.dbt()
    touched = trace_impact(workspace.project.products, name, scope)
    existing, notes = _read_partitions(workspace, touched)
    return _build_view(workspace.project, product, scope, touched, manifest, existing, notes)


def find_touches(workspace: Workspace, name: str, scope: Sequence[str]) -> ImpactView | None:
    """What a plan touches, from the project files and the manifest of dbt; looks at no table.

    None if the project no longer has the product. Whatever is wrong is a note: a plan does not depend on it.
    """
    products = workspace.project.products
    product = products.get(name)
    if product is None:
        return None
    notes: list[str] = []
    touched: tuple[Touched, ...] = ()
    manifest = None
    try:
        touched = trace_impact(products, name, scope)
    except UsageError as error:
        notes.append(f"products that read it are not known: {error.message}")
    try:
        manifest = workspace.engines.dbt()
    except ErrataError as error:
        notes.append(error.message)
    return _build_view(workspace.project, product, scope, touched, manifest, {}, notes)


def _read_partitions(workspace: Workspace, touched: Sequence[Touched]) -> tuple[dict[str, Collection[str]], list[str]]:
    """Partitions that the tables of touched products have, by product; a table that cannot be read is a note."""
    found: dict[str, Collection[str]] = {}
    notes = []
    for one in touched:
        target = one.product.target
        try:
            state = workspace.engines.targets.read_target(target.table, target.column, target.grain, ())
            found[one.product.name] = state.partitions.keys()
        except ErrataError as error:
            notes.append(f"which partitions {one.product.name} has is not known: {error.message}")
    return found, notes


def _build_view(
    project: Project,
    product: Product,
    scope: Sequence[str],
    touched: Sequence[Touched],
    manifest: DbtManifest | None,
    existing: Mapping[str, Collection[str]],
    notes: Sequence[str],
) -> ImpactView:
    named = {one.name: _list_names(project, one.name) for one in (product, *(one.product for one in touched))}
    products = tuple(
        _build_touched(one, existing.get(one.product.name), scope, product.name, named[one.product.name])
        for one in touched
    )
    concerned = [product, *(one.product for one in touched if one.product.name != product.name)]
    view = ImpactView(
        product=product.name,
        table=product.target.table,
        grain=product.target.grain.value,
        partitions=tuple(scope),
        products=products,
        consumers=tuple(dict.fromkeys(name for one in concerned for name in named[one.name])),
        tells=_list_tells(project, product.name),
        notes=tuple(notes),
    )
    return view if manifest is None else _add_dbt(view, manifest, concerned)


def _list_tells(project: Project, product: str) -> tuple[TellView, ...]:
    told = [(one, one.tell) for one in project.list_consumers(product)]
    return tuple(
        TellView(one.name, tell.channel, project.channels[tell.channel].kind, tell.on) for one, tell in told if tell
    )


def _list_names(project: Project, product: str) -> tuple[str, ...]:
    return tuple(one.name for one in project.list_consumers(product))


def _build_touched(
    one: Touched, existing: Collection[str] | None, scope: Sequence[str], root: str, consumers: tuple[str, ...]
) -> TouchedView:
    product, partitions = one.product, one.partitions
    there, absent = _locate(partitions, existing)
    if product.name == root:
        there = there - set(scope)  # the change itself
    grain = product.target.grain
    return TouchedView(
        product=product.name,
        table=product.target.table,
        owner=product.owner,
        grain=grain.value,
        partitions=sort_oldest_first(grain, there),
        since=partitions.since,
        all=partitions.is_all,
        reads=tuple(ReadingView(reading.input, reading.product, reading.because) for reading in one.readings),
        consumers=consumers,
        absent=sort_oldest_first(grain, absent),
        located=existing is not None,
    )


def _locate(partitions: PartitionSet, existing: Collection[str] | None) -> tuple[set[str], set[str]]:
    """Touched partitions that the table has, and named ones that it does not have."""
    if existing is None:
        return set(partitions.names), set()
    return {name for name in existing if partitions.contains(name)}, set(partitions.names) - set(existing)


def _add_dbt(view: ImpactView, manifest: DbtManifest, concerned: Sequence[Product]) -> ImpactView:
    tables = [table for product in concerned for table in list_published_tables(product)]
    found = manifest.graph.list_readers(tables)
    notes = list(view.notes)
    if not any(manifest.graph.find_tables(table) for table in list_published_tables(concerned[0])):
        notes.append(f"{manifest.describe()} has no source or model for {view.table}")
    notes += [
        f"{node.unique_id} of dbt is in database {node.relation[0]}; it was taken for {table} by schema and name"
        for table in tables
        for node in manifest.graph.find_tables(table)
        if node.relation[0] not in ("", table.partition(".")[0].casefold())
    ]
    return replace(
        view,
        dbt=tuple(_build_model(one) for one in found if not is_exposure(one.node)),
        exposures=tuple(_build_exposure(one) for one in found if is_exposure(one.node)),
        notes=tuple(notes),
    )


def _build_model(one: DbtReader) -> DbtModelView:
    node, data = one.node, one.node.data
    return DbtModelView(
        unique_id=node.unique_id,
        name=node.name,
        reads=one.reads,
        event_time=node.event_time,
        materialized=str((data.get("config") or {}).get("materialized") or ""),
        relation=str(data.get("relation_name") or ""),
        path=str(data.get("original_file_path") or ""),
    )


def _build_exposure(one: DbtReader) -> ExposureView:
    data = one.node.data
    owner = data.get("owner") or {}
    return ExposureView(
        unique_id=one.node.unique_id,
        name=str(data.get("label") or one.node.name),
        type=str(data.get("type") or ""),
        owner=str(owner.get("name") or owner.get("email") or ""),
        email=str(owner.get("email") or ""),
        url=str(data.get("url") or ""),
        reads=one.reads,
    )
