"""Check that the project files agree with the code and the tables.

Reads project files, and tables only through the given reader. Changes nothing and returns all problems.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path as FilePath

from errata.errors import ErrataError
from errata.model.graph.product_graph import Edge, describe_cycle, find_cycles
from errata.model.near_miss import describe_entries
from errata.model.partition import Grain
from errata.model.product import INEXACT, Input, Metric, Product, Project, Role
from errata.model.product.erasure import SUBJECT, SUBJECT_TYPES
from errata.model.span import unit_transform
from errata.ports.tables import InputReader, PartitionField, TableDescription, TableReader
from errata.project.load import PROJECT_FILE
from errata.project.problems import Path, ProblemReport, ProjectProblem
from errata.project.transform_check import check_transform
from errata.project.yaml.problem_texts import hint_nearest
from errata.project.yaml.tree import TreeError, parse_tree

PLACEHOLDER = "CHANGE_ME"
"""What `errata adopt` writes where only a person knows the value."""


def check_project(
    project: Project,
    reader: TableReader | None = None,
    inputs: InputReader | None = None,
    misread: Mapping[str, Collection[Path]] | None = None,
    silent: Collection[str] = (),
) -> tuple[ProjectProblem, ...]:
    """Every problem of a project; tables and source files are not checked without a reader.

    ``misread`` has, by file, the mappings of which a key could not be read: nothing more is reported there. Topics of
    ``silent`` clusters are not looked for.
    """
    around = misread or {}
    top = open_report(project, PROJECT_FILE, around.get(PROJECT_FILE, ()))
    _check_placeholders(top)
    _check_people(project, top)
    _check_programs(project, top)
    _check_price(project, top)
    if reader is not None:
        _check_warehouses(project, top)
    look = _TableLook(project, reader, top)
    if any(product.needs_list for product in project.products.values()):
        _check_erasure(project, look, top)
    cycles = {cycle[0].parent.name: cycle for cycle in find_cycles(project.products.values())}
    problems: list[ProjectProblem] = []
    for product in project.products.values():
        report = open_report(project, product.path, around.get(product.path, ()))
        _check_placeholders(report)
        check_transform(FilePath(project.root), product, report)
        _check_owner(project, product, report)
        _check_key(product, report)
        _check_target(product, look, report)
        if product.name in cycles:
            _report_cycle(cycles[product.name], report)
        for source in product.inputs:
            _check_input(product, source, look, report)
            if inputs is not None and (source.files is not None or _can_ask(project, source, silent)):
                _check_found(project, source, inputs, report)
        problems += report.problems
    return (*top.problems, *problems)


def build_add_columns_sql(table: str, columns: Iterable[str]) -> str:
    """SQL that adds the missing lineage columns to a table."""
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{column} STRING' for column in columns)})"


def open_report(project: Project, file: str, misread: Collection[Path] = ()) -> ProblemReport:
    """A report that knows the lines of a file that has been loaded."""
    report = ProblemReport(file)
    with suppress(OSError, TreeError):
        report.root = parse_tree((FilePath(project.root) / file).read_bytes())[0]
    report.misread.update(misread)
    return report


@dataclass(frozen=True, slots=True)
class _TableLook:
    """Looks up tables; a catalog that does not answer is one problem of ``errata.yaml``, not one of every table."""

    project: Project
    reader: TableReader | None
    top: ProblemReport

    def describe(self, table: str, path: Path, report: ProblemReport) -> TableDescription | None:
        if self.reader is None or PLACEHOLDER in table:
            return None
        try:
            return self.reader.describe(table)
        except ErrataError as error:
            catalog = error.fields.get("catalog")
            said = self.project.redact(error.message)
            if catalog is None:
                report.at(path, said, found=False)
            elif catalog in self.project.catalogs and not self.top.has_problem(f"catalogs.{catalog}.uri"):
                self.top.at(("catalogs", catalog, "uri"), said, found=False)
            return None


def _check_placeholders(report: ProblemReport) -> None:
    """Refuse what `errata adopt` left for a person to fill in."""
    for path, text in report.iterate_texts():
        if PLACEHOLDER in text:
            report.at(path, f"{PLACEHOLDER} was left in; write what belongs here")


def _check_warehouses(project: Project, report: ProblemReport) -> None:
    for name in project.catalogs:
        if said := describe_missing_warehouse(project, name):
            report.at(("catalogs", name, "warehouse"), said)


def describe_missing_warehouse(project: Project, catalog: str) -> str | None:
    """The warehouse of a catalog, if it is to be on this machine and does not exist; usually a wrong path."""
    place = (project.catalogs[catalog].warehouse or "").removeprefix("file://")
    if not place.startswith("/") or FilePath(place).is_dir():
        return None
    near = next(parent for parent in FilePath(place).parents if parent.is_dir())
    found = describe_entries(sorted(one.name for one in near.iterdir() if not one.name.startswith(".")))
    return project.redact(f"there is no directory {place}; {near} has {found}")


def _check_people(project: Project, report: ProblemReport) -> None:
    if project.single_user:
        return

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


def _check_programs(project: Project, report: ProblemReport) -> None:
    """Check that the programs of alarm, channels and consumers exist; their absence would show when they are needed."""
    commands: list[tuple[Path, Sequence[str]]] = (
        [(("alarm", "command"), project.alarm.command)] if project.alarm else []
    )
    commands += [(("channels", name, "command"), one.command) for name, one in project.channels.items()]
    for name, one in project.consumers.items():
        steps = [(("refresh", n), step) for n, step in enumerate(one.refresh)]
        commands += [(("consumers", name, *place, "command"), step.command) for place, step in steps]
        commands += [(("consumers", name, "verify", "command"), one.verify.command)] if one.verify else []
        commands += [(("consumers", name, "rerun"), one.rerun)]
    for path, command in commands:
        # looked up as it will be started: a name through the PATH, a path from the project's directory
        program = command[0] if command else ""
        place = program if "/" not in program else str(FilePath(project.root) / program)
        if program and shutil.which(place) is None:
            report.at((*path, 0), "expected a program that can be started", found=False)


def _check_price(project: Project, report: ProblemReport) -> None:
    """Check that a price is set if there is a cost limit; without a price no run could reach the limit."""
    if project.limits.max_usd is not None and Decimal(project.core_hour_usd) <= 0:
        said = (
            f"expected price.core_hour_usd above 0 beside it; it is {project.core_hour_usd}, so no run could reach it"
        )
        report.at(("limits", "max_usd"), said, found=False)


def _check_erasure(project: Project, look: _TableLook, report: ProblemReport) -> None:
    """Check that the erasure list is readable if a product names subjects, because publications need it."""
    path = ("erasure", "table")
    facts = look.describe(project.erasure.table, path, report) if project.erasure is not None else None
    if facts is not None and SUBJECT not in [column.name for column in facts.columns]:
        report.at(path, f"expected a list that errata erase add made, with a column {SUBJECT}", found=False)


def _check_owner(project: Project, product: Product, report: ProblemReport) -> None:
    """Check that the owning team has someone who may approve; otherwise every plan would wait for ever."""
    team = [person for person in project.people.values() if product.owner in person.teams]
    if product.approval.owner and team and not any(Role.APPROVER in person.roles for person in team):
        said = f"nobody of {product.owner} has the role approver; expected one, or approval: {{owner: false}}"
        report.at(("owner",), said, found=False)


def _check_key(product: Product, report: ProblemReport) -> None:
    """Warn about a key that no rule holds to be unique: rows are matched by it in diffs and in `errata why --key`."""
    key = product.target.key
    unique = [set(check.columns) for check in product.checks if check.metric is Metric.DUPLICATE_VALUES]
    if key and not report.is_misread(("checks",)) and not any(columns <= set(key) for columns in unique):
        rule = f"{{metric: duplicateValues, columns: [{', '.join(key)}], mustBe: 0}}"
        said = f"no check says that the key is unique, and diffs match rows by it; add to checks: {rule}"
        report.at(("target", "key"), said, found=False, level="warning")


def _check_target(product: Product, look: _TableLook, report: ProblemReport) -> None:
    target = product.target
    facts = look.describe(target.table, ("target", "table"), report)
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
    wanted += [(("made_from", column), column) for column in product.made_from]
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


def _can_ask(project: Project, source: Input, silent: Collection[str]) -> bool:
    """Whether it reads a topic of a cluster that is declared and answers; anything else is a problem already."""
    return source.kafka is not None and source.kafka.cluster in project.kafka and source.kafka.cluster not in silent


def _check_found(project: Project, source: Input, inputs: InputReader, report: ProblemReport) -> None:
    """Check that the pattern of an input matches a file in some partition, or that its topic is there."""
    path = ("inputs", source.name, "files") if source.files else ("inputs", source.name, "kafka", "topic")
    if source.transactions_of is not None:
        path = ("inputs", source.transactions_of, "cdc", "transactions")
    try:
        miss = inputs.find_near_miss(source)
    except ErrataError as error:
        report.at(path, project.redact(error.message), found=False)
        return
    if miss is not None:
        report.at(path, f"no file matches it; {project.redact(miss.describe())}")


def _report_cycle(cycle: Sequence[Edge], report: ProblemReport) -> None:
    """Refuse products that are computed from each other; the problem is at the input that closes the cycle."""
    if len(cycle) == 1:
        said = f"{cycle[0].child.name} reads its own table; expected own: true, which gives it its earlier partitions"
    else:
        said = f"{describe_cycle(cycle)} is a cycle; expected no product to be computed from itself"
    report.at(("inputs", cycle[-1].source.name, "table"), said, found=False)


def _check_input(product: Product, source: Input, look: _TableLook, report: ProblemReport) -> None:
    if source.table is None or source.own:
        return
    facts = look.describe(source.table, ("inputs", source.name, "table"), report)
    if facts is None or source.partition is None:
        return
    types = {column.name: column.type for column in facts.columns}
    _check_column(("inputs", source.name, "partition"), source.partition, list(types), source.table, report)
    grain, parents = source.grain or product.target.grain, look.project.products.values()
    made = [one.target for one in parents if (one.target.table, one.target.column) == (source.table, source.partition)]
    for target in made:
        if types.get(source.partition) == "string" and target.grain is not grain:
            said = f"{source.table} holds {target.grain}s as text; expected grain: {target.grain}"
            report.at_key(("inputs", source.name, "grain"), said)
