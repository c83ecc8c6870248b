"""`errata check` for rules, catalogs and dbt: check each rule against the tables it uses. Reads metadata only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from errata.errors import ErrataError, UsageError
from errata.gate.rules.rule_check import build_bare_manifest
from errata.model.product import Product, Project
from errata.planning.catalog_refs import find_refs_problem
from errata.planning.rule_check import find_flawed_rules
from errata.ports.tables import TableReader, TagKeeper
from errata.project.check import open_report
from errata.project.load import PROJECT_FILE
from errata.project.problems import ProjectProblem


def find_ref_problems(project: Project, pins: TagKeeper) -> Iterator[ProjectProblem]:
    """Targets whose catalog does not keep branches and tags, as far as this shows without writing."""
    for product in project.products.values():
        try:
            problem = find_refs_problem(pins, product.target.table)
        except ErrataError:  # another check reports tables that cannot be read
            continue
        if problem:
            report = open_report(project, product.path)
            report.at(("target", "table"), project.redact(problem), found=False)
            yield from report.problems


def find_dbt_problems(project: Project) -> tuple[ProjectProblem, ...]:
    """A manifest of dbt that is missing, or is not one that Errata understands."""
    if project.dbt is None:
        return ()
    from errata.engines.files.dbt_manifest import read_dbt_manifest

    report = open_report(project, PROJECT_FILE)
    try:
        read_dbt_manifest(project.dbt.manifest)
    except ErrataError as error:
        report.at(("dbt", "manifest"), f"{error.message}; {error.hint}", found=False)
    return tuple(report.problems)


def find_verify_problems(project: Project, tables: TableReader) -> Iterator[ProjectProblem]:
    """What consumers should show, ``verify.equals``, if it is not an aggregate over the tables of their products."""
    from errata.gate.rules.expressions import parse_aggregate

    report = open_report(project, PROJECT_FILE)
    for name, consumer in project.consumers.items():
        for read in consumer.reads if consumer.verify else ():
            product = project.products.get(read)
            try:
                facts = tables.describe(product.target.table) if product else None
            except ErrataError:  # another check reports tables that cannot be read
                continue
            if facts is None or consumer.verify is None:
                continue
            types = {column.name: column.type for column in facts.columns}
            try:
                parse_aggregate(consumer.verify.equals, where=read, types=types, key="equals")
            except UsageError as error:
                report.at(("consumers", name, "verify", "equals"), error.message, found=False)
    yield from report.problems


def find_rule_problems(project: Project, tables: TableReader) -> tuple[ProjectProblem, ...]:
    """Rules that cannot be measured, with their line; another check reports tables that cannot be read."""
    return tuple(
        problem for product in project.products.values() for problem in _find_product_problems(project, product, tables)
    )


def _find_product_problems(project: Project, product: Product, tables: TableReader) -> Iterator[ProjectProblem]:
    try:
        facts = tables.describe(product.target.table)
    except ErrataError:
        return
    mine = next((f for f in facts.partition_fields if f.column == product.target.column), None)
    if mine is None:
        return
    columns = {column.name: column.type for column in facts.columns} | dict(product.target.add_columns)
    yield from _find_merge_problems(project, product, columns)
    manifest = build_bare_manifest(product, columns, mine.column_type)
    for flaw in find_flawed_rules(project, product, manifest, tables):
        yield ProjectProblem(**flaw)


def _find_merge_problems(project: Project, product: Product, columns: Mapping[str, str]) -> Iterator[ProjectProblem]:
    """A merge version that is not a column of the target, or an invalid delete condition."""
    merge = product.publish.merge
    told: dict[str, str] = {}
    if merge and merge.version and merge.version not in columns:
        told["version"] = f"expected a column of {product.target.table}, found {merge.version}"
    if merge and merge.delete:
        from errata.gate.rules.row_rules import delete_sql

        try:
            delete_sql(merge.delete)
        except UsageError as error:
            told["delete"] = error.message.removeprefix("publish.merge.delete: ")
    for name, message in told.items():
        key = f"publish.merge.{name}"
        yield ProjectProblem(product.path, product.lines.get(key), None, project.redact(f"{key}: {message}"), key)
