"""Check that the project files agree with the code and the tables.

Reads project files, and tables only through the given reader. Changes nothing and returns all problems.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path as FilePath

from errata.errors import ErrataError
from errata.model.partition import Grain
from errata.model.product import INEXACT, Input, Product, Project, Role
from errata.model.product.erasure import SUBJECT, SUBJECT_TYPES
from errata.model.span import unit_transform
from errata.ports.tables import PartitionField, TableDescription, TableReader
from errata.project.problems import Path, ProblemReport, ProjectProblem
from errata.project.transform_check import check_transform
from errata.project.yaml.problem_texts import hint_nearest
from errata.project.yaml.tree import TreeError, parse_tree


def check_project(project: Project, reader: TableReader | None = None) -> tuple[ProjectProblem, ...]:
    """Every problem of a loaded project; tables are not checked without a reader."""
    problems = [*_check_people(project), *_check_alarm(project), *_check_price(project)]
    problems += _check_erasure(project, reader)
    for product in project.products.values():
        report = open_report(project, product.path)
        check_transform(FilePath(project.root), product, report)
        _check_owner(project, product, report)
        if reader is not None:
            _check_target(project, product, reader, report)
            for source in product.inputs:
                _check_input(project, source, reader, report)
        problems += report.problems
    return tuple(problems)


def build_add_columns_sql(table: str, columns: Iterable[str]) -> str:
    """SQL that adds the missing lineage columns to a table."""
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{column} STRING' for column in columns)})"


def open_report(project: Project, file: str) -> ProblemReport:
    """A report that knows the lines of a file that has been loaded."""
    try:
        root, _ = parse_tree((FilePath(project.root) / file).read_bytes())
    except (OSError, TreeError):
        return ProblemReport(file)
    return ProblemReport(file, root)


def _check_people(project: Project) -> list[ProjectProblem]:
    report = open_report(project, "errata.yaml")
    if project.single_user:
        return []

    def who(role: Role) -> set[str]:
        return {name for name, person in project.people.items() if role in person.roles}

    for role in (role for role in Role if role is not Role.BREAK_GLASS):
        if not who(role):
            report.at(("people",), f"nobody has the role {role}", found=False)
    for role in (Role.APPROVER, Role.PUBLISHER):
        pairs = {(asker, other) for asker in who(Role.REQUESTER) for other in who(role) if asker != other}
        if who(role) and who(Role.REQUESTER) and not pairs:
            report.at(
                ("people",), f"nobody but the requester has the role {role}; expected another person", found=False
            )
    publishers = who(Role.PUBLISHER)
    if publishers and all(project.people[name].service for name in publishers):
        said = "only service accounts have the role publisher; expected a person, who releases and rolls back"
        report.at(("people",), said, found=False)
    return report.problems


def _check_alarm(project: Project) -> list[ProjectProblem]:
    """Check that the alarm program exists; otherwise its absence would show only on break-glass."""
    report = open_report(project, "errata.yaml")
    if project.alarm is not None:
        # looked up as it will be started: a name through the PATH, a path from the project's directory
        program = project.alarm.command[0]
        place = program if "/" not in program else str(FilePath(project.root) / program)
        if shutil.which(place) is None:
            report.at(("alarm", "command", 0), "expected a program that can be started", found=False)
    return report.problems


def _check_price(project: Project) -> list[ProjectProblem]:
    """Check that a price is set if there is a cost limit; without a price no run could reach the limit."""
    report = open_report(project, "errata.yaml")
    if project.limits.max_usd is not None and Decimal(project.core_hour_usd) <= 0:
        said = (
            f"expected price.core_hour_usd above 0 beside it; it is {project.core_hour_usd}, so no run could reach it"
        )
        report.at(("limits", "max_usd"), said, found=False)
    return report.problems


def _check_erasure(project: Project, reader: TableReader | None) -> list[ProjectProblem]:
    """Check that the erasure list is readable if a product names subjects, because publications need it."""
    report = open_report(project, "errata.yaml")
    asked = any(product.target.subjects for product in project.products.values())
    if reader is not None and project.erasure is not None and asked:
        facts = _describe_table(project, project.erasure.table, ("erasure", "table"), reader, report)
        if facts is not None and SUBJECT not in [column.name for column in facts.columns]:
            said = f"expected a list that errata erase add made, with a column {SUBJECT}"
            report.at(("erasure", "table"), said, found=False)
    return report.problems


def _check_owner(project: Project, product: Product, report: ProblemReport) -> None:
    """Check that the owning team has someone who may approve; otherwise every plan would wait for ever."""
    team = [person for person in project.people.values() if product.owner in person.teams]
    if product.approval.owner and team and not any(Role.APPROVER in person.roles for person in team):
        said = f"nobody of {product.owner} has the role approver; expected one, or approval: {{owner: false}}"
        report.at(("owner",), said, found=False)


def _describe_table(
    project: Project, table: str, path: Path, reader: TableReader, report: ProblemReport
) -> TableDescription | None:
    try:
        return reader.describe(table)
    except ErrataError as error:
        report.at(path, project.redact(error.message), found=False)
        return None


def _check_target(project: Project, product: Product, reader: TableReader, report: ProblemReport) -> None:
    target = product.target
    facts = _describe_table(project, target.table, ("target", "table"), reader, report)
    if facts is None:
        return
    types = {column.name: column.type for column in facts.columns}
    _check_added(product, types, report)
    types = {**product.target.add_columns, **types}
    names = list(types)
    wanted: list[tuple[Path, str]] = [(("target", "partition", "column"), target.column)]
    wanted += [(("target", "key", n), column) for n, column in enumerate(target.key)]
    wanted += [(("target", "subjects", n), column) for n, column in enumerate(target.subjects)]
    for n, check in enumerate(product.checks):
        many = len(check.columns) > 1
        wanted += [
            (("checks", n, "columns", m) if many else ("checks", n, "column"), column)
            for m, column in enumerate(check.columns)
        ]
    wanted += [(("classified", n), column) for n, column in enumerate(product.classified)]
    wanted += [(("diff", "tolerance", column), column) for column in product.tolerance]
    for path, column in wanted:
        _check_column(path, column, names, target.table, report)
    for name, kind in types.items():
        if name in product.tolerance and not kind.startswith(INEXACT):
            found = f"expected a column of type float, double or decimal; {name} is {kind}"
            report.at(("diff", "tolerance", name), found, found=False)
    for n, name in enumerate(target.subjects):
        if types.get(name, "string") not in SUBJECT_TYPES:
            said = f"expected a column of type {', '.join(SUBJECT_TYPES)}; {name} is {types[name]}"
            report.at(("target", "subjects", n), said, found=False)
    if target.column in names:
        _check_grain(product, types[target.column], facts.partition_fields, report)
    missing = [column for column in product.lineage_columns if column not in names]
    if missing:
        statement = build_add_columns_sql(target.table, missing)
        report.at(("lineage_columns",), f"{target.table} lacks {', '.join(missing)}; add: {statement}", found=False)


def _check_added(product: Product, types: Mapping[str, str], report: ProblemReport) -> None:
    """Check that each column a product adds is absent, or exists with the declared type."""
    spelt = {name.casefold(): name for name in types}
    for name, kind in product.target.add_columns.items():
        there = spelt.get(name.casefold(), name)
        if there != name:
            report.at_key(("target", "add_columns", name), f"{name} differs from the column {there} in case only")
        elif types.get(name, kind) != kind:
            said = f"{product.target.table} has it as {types[name]}; expected that type, because a run changes none"
            report.at(("target", "add_columns", name), said)


def _check_column(path: Path, column: str, names: list[str], table: str, report: ProblemReport) -> None:
    if column not in names:
        report.at(path, f"expected a column of {table}{hint_nearest(column, names)}")


def _check_grain(product: Product, kind: str, fields: Iterable[PartitionField], report: ProblemReport) -> None:
    """Check that the column type supports the grain; a partition spec of another grain only costs a rewrite."""
    target = product.target
    if unit_transform(kind, target.grain) is not None:
        return
    own = [str(field.grain) for field in fields if field.column == target.column and field.grain is not None]
    fits = own or [str(grain) for grain in Grain if unit_transform(kind, grain) is not None]
    told = f"expected {' or '.join(fits)}" if fits else "no grain fits that"
    report.at(("target", "partition", "grain"), f"{target.column} of {target.table} is {kind}; {told}")


def _check_input(project: Project, source: Input, reader: TableReader, report: ProblemReport) -> None:
    if source.table is None or source.own:
        return
    facts = _describe_table(project, source.table, ("inputs", source.name, "table"), reader, report)
    if facts is not None and source.partition is not None:
        names = [column.name for column in facts.columns]
        _check_column(("inputs", source.name, "partition"), source.partition, names, source.table, report)
