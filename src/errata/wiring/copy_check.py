"""Compare copies with the target and the table in the warehouse, for `errata check` and `errata doctor`. Only reads."""

from __future__ import annotations

from collections.abc import Iterator

from errata.delivery.copies.declared_copies import look_at_copy
from errata.errors import ErrataError, MissingCredentials, MissingDriver, NotFound
from errata.model.copy.declaration import Copy
from errata.model.product import Product
from errata.project.check import open_report
from errata.project.load import PROJECT_FILE
from errata.project.problems import ProblemReport, ProjectProblem
from errata.text.numbers import plural
from errata.views.checks import DoctorCheck
from errata.workspace import Workspace


def find_copy_problems(workspace: Workspace) -> Iterator[ProjectProblem]:
    """What does not fit between products and the tables of their copies, each at its place in the files.

    A warehouse that does not answer is one problem of ``errata.yaml``. What cannot be checked from here, because a
    variable or a package is missing, is a warning: the files may be right.
    """
    project = workspace.project
    top = open_report(project, PROJECT_FILE)
    for product in project.products.values():
        if not product.target.copies or not _is_readable(workspace, product):
            continue
        report = open_report(project, product.path)
        for n, declared in enumerate(product.target.copies):
            _check_copy(workspace, product, declared, n, report, top)
        yield from report.problems
    yield from top.problems


def _is_readable(workspace: Workspace, product: Product) -> bool:
    """Whether the target can be described; another check reports one that cannot."""
    try:
        workspace.engines.tables.describe(product.target.table)
    except ErrataError:
        return False
    return True


def _check_copy(
    workspace: Workspace, product: Product, declared: Copy, n: int, report: ProblemReport, top: ProblemReport
) -> None:
    path = ("target", "copies", n)
    try:
        found = look_at_copy(workspace, product, declared)
    except (MissingCredentials, MissingDriver) as missing:
        hint = f": {missing.hint}" if isinstance(missing, MissingDriver) else ""
        report.at(path, f"not compared with the warehouse: {missing.message}{hint}", found=False, level="warning")
    except NotFound as missing:
        report.at((*path, "table"), missing.message, found=False)
    except ErrataError as error:
        key = f"warehouses.{declared.warehouse}"
        if not top.has_problem(key):
            top.at(("warehouses", declared.warehouse), workspace.project.redact(error.message), found=False)
    else:
        for problem in found.problems:
            level = "warning" if problem.is_warning else "problem"
            report.at((*path, *problem.key), problem.text, found=False, level=level)


def check_copies(workspace: Workspace) -> Iterator[DoctorCheck]:
    """One check for each copy."""
    for product in workspace.project.products.values():
        for declared in product.target.copies:
            if _is_readable(workspace, product):
                yield _describe_copy(workspace, product, declared)


def _describe_copy(workspace: Workspace, product: Product, declared: Copy) -> DoctorCheck:
    name = f"copy {declared.name}"
    try:
        found = look_at_copy(workspace, product, declared)
    except MissingCredentials as missing:
        return DoctorCheck(name, ok=True, found=f"not looked at: {missing.message}", waiting=True)
    except ErrataError as error:
        return DoctorCheck(name, ok=False, found=error.message, hint=error.hint or "errata check")
    if found.copy is None or found.errors:
        return DoctorCheck(name, ok=False, found="; ".join(found.errors), hint="errata check")
    told = [f"{plural(len(found.copy.columns), 'column')} of {product.target.table}"]
    told += [f"not copied: {', '.join(found.left_out)}"] if found.left_out else []
    return DoctorCheck(name, ok=True, found="; ".join([*told, *(one.text for one in found.problems)]))
