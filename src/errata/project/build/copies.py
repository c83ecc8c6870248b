"""Check the copies of a product, as far as its file and ``errata.yaml`` tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.model.copy.declaration import REFRESH, Copy
from errata.model.product import Product, Project
from errata.model.side_tables import is_side_table_mode
from errata.project.forms import ProductForm
from errata.project.problems import Path, ProblemReport, ProjectProblem
from errata.project.yaml.problem_texts import hint_nearest
from errata.project.yaml.tree import Node


def check_copies(file: ProductForm, project: Project | None, report: ProblemReport) -> None:
    """Report copies that cannot be, each at its place; ``project`` is None if errata.yaml has errors."""
    target = file.target
    if target.copies and is_side_table_mode(file.publish):
        said = f"publish.mode {file.publish.mode} leaves the table as it is, so that a copy has nothing to follow"
        report.at_key(("target", "copies"), said)
    seen: set[tuple[str, str]] = set()
    for n, copy in enumerate(target.copies):
        path = ("target", "copies", n)
        if project is not None and copy.warehouse not in project.warehouses:
            known = hint_nearest(copy.warehouse, project.warehouses)
            report.at((*path, "warehouse"), f"expected a warehouse of errata.yaml{known}")
        place = (copy.warehouse, copy.table.casefold())
        if place in seen:
            report.at((*path, "table"), "this copy is declared twice; expected a table of its own")
        seen.add(place)
        _check_columns(copy, target.column, path, report)
        if copy.mode == REFRESH:
            _check_refresh(copy, project, path, report)


def _check_refresh(copy: Copy, project: Project | None, path: Path, report: ProblemReport) -> None:
    """A table that reads the lake's own metadata is one of Snowflake, and has the columns that the lake has."""
    warehouse = project.warehouses.get(copy.warehouse) if project is not None else None
    if warehouse is not None and warehouse.type != "snowflake":
        report.at((*path, "mode"), "refresh is for a warehouse with type: snowflake; expected replace")
    for key in sorted(report.keys_at(path) & {"partition", "columns", "default"}):
        report.at_key((*path, key), f'the key "{key}" belongs to a copy with mode: replace')


def _check_columns(copy: Copy, column: str, path: Path, report: ProblemReport) -> None:
    named = dict(copy.columns)
    if copy.partition is not None and named.get(column, copy.partition) != copy.partition:
        said = f"columns has {named[column]} for {column}, the partition column; expected one of the two keys"
        report.at((*path, "partition"), said)
    taken: dict[str, str] = {}
    for source, name in named.items():
        if name in taken:
            report.at((*path, "columns", source), f"{name} is the copy's column of {taken[name]} already")
        taken[name] = source
    report.refuse_repeats(copy.default, (*path, "default"))
    for n, name in enumerate(copy.default):
        if name in taken or name == copy.partition:
            report.at((*path, "default", n), f"{name} gets its values from the target; expected another column")


def find_shared_copies(products: Mapping[str, Product], roots: Mapping[str, Node | None]) -> tuple[ProjectProblem, ...]:
    """Tables that several products would each replace; ``roots`` are the parsed product files."""
    owners: dict[tuple[str, str], str] = {}
    found: list[ProjectProblem] = []
    for product in products.values():
        report = ProblemReport(product.path, roots.get(product.path))
        for n, copy in enumerate(product.target.copies):
            place = (copy.warehouse, copy.table.casefold())
            if owners.setdefault(place, product.name) != product.name:
                said = f"it is a copy of {owners[place]}; expected a table of its own"
                report.at(("target", "copies", n, "table"), said)
        found += report.problems
    return tuple(found)
