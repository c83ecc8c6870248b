"""``errata check`` for rules and catalogs: each rule against the tables it speaks about. Reads metadata only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from errata.errors import ErrataError, UsageError
from errata.gate.rules.rule_check import bare_manifest, flaws_of, inputs_in_rules
from errata.model.manifest import InputPin
from errata.model.product import Product, Project
from errata.planning.catalog_refs import refs_problem
from errata.ports.tables import PinKeeper, TableFacts, TableReader
from errata.project.check import report_on
from errata.project.problems import Problem


def ref_problems(project: Project, pins: PinKeeper) -> Iterator[Problem]:
    """Targets whose catalog keeps no branches and tags, as far as reading can tell."""
    for product in project.products.values():
        try:
            problem = refs_problem(pins, product.target.table)
        except ErrataError:  # a table that cannot be read is for others to report
            continue
        if problem:
            report = report_on(project, product.path)
            report.at(("target", "table"), project.redact(problem), found=False)
            yield from report.problems


def rule_problems(project: Project, tables: TableReader) -> tuple[Problem, ...]:
    """What cannot be measured, by line; a table that cannot be described is for others to report."""
    return tuple(problem for product in project.products.values() for problem in _problems(project, product, tables))


def _problems(project: Project, product: Product, tables: TableReader) -> Iterator[Problem]:
    facts = _described(tables, product.target.table)
    mine = next((f for f in facts.partition_fields if f.column == product.target.column), None) if facts else None
    if facts is None or mine is None:
        return
    columns = {column.name: column.type for column in facts.columns} | dict(product.target.add_columns)
    yield from _merge_problems(project, product, columns)
    manifest = bare_manifest(product, columns, mine.column_type)
    spoken_of = inputs_in_rules(manifest)
    known = tuple(_with_columns(product, pin, tables) if pin.name in spoken_of else pin for pin in manifest.inputs)
    for flaw in flaws_of(replace(manifest, inputs=known)):
        rule = f"{flaw.section}[{flaw.position}]"
        key = f"{rule}.{flaw.key}" if f"{rule}.{flaw.key}" in product.lines else rule
        yield Problem(product.path, product.lines.get(key), None, project.redact(f"{key}: {flaw.message}"), key)


def _merge_problems(project: Project, product: Product, columns: Mapping[str, str]) -> Iterator[Problem]:
    """A version that rows cannot be compared by, a condition that cannot be asked."""
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
        yield Problem(product.path, product.lines.get(key), None, project.redact(f"{key}: {message}"), key)


def _with_columns(product: Product, pin: InputPin, tables: TableReader) -> InputPin:
    source = next(source for source in product.inputs if source.name == pin.name)
    if source.table is None or source.own or source.eras:
        return pin
    facts = _described(tables, source.table)
    return pin if facts is None else replace(pin, columns={column.name: column.type for column in facts.columns})


def _described(tables: TableReader, table: str) -> TableFacts | None:
    try:
        return tables.describe(table)
    except ErrataError:
        return None
