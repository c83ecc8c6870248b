"""Load ``errata.yaml`` and ``products/*.yaml``. Reads those files and the environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from errata.errors import ProjectFileError
from errata.model.product import Product, Project
from errata.project.build.consumers import check_reads, merge_named_consumers
from errata.project.build.copies import find_shared_copies
from errata.project.build.product import build_product, build_project
from errata.project.forms import ProductForm, ProjectForm
from errata.project.problems import Path as KeyPath
from errata.project.problems import ProblemReport, ProjectProblem, refuse_problems
from errata.project.yaml.environment import (
    Allowed,
    is_allowed_anywhere,
    is_data_location,
    list_unset_variables,
    resolve_variables,
)
from errata.project.yaml.secrets import list_written_credentials, refuse_secrets, rule_for_product, rule_for_project
from errata.project.yaml.tree import MAX_BYTES, TreeError, parse_tree
from errata.project.yaml.value_reader import read_value

PROJECT_FILE = "errata.yaml"
PRODUCTS = "products"


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """What was read, and every problem with it. ``project`` is None if ``errata.yaml`` is not readable at all.

    With problems the project lacks the keys, and perhaps the products, that are wrong: it is good for finding more
    problems and for nothing else.
    """

    project: Project | None
    problems: tuple[ProjectProblem, ...]
    misread: Mapping[str, frozenset[KeyPath]]  # file → mappings of which a key could not be read


def load_project(path: Path | str, *, environ: Mapping[str, str] | None = None) -> Project:
    """Load a project from its directory or ``errata.yaml``; raises one ``ProjectFileError`` with all problems."""
    files = read_project_files(path, environ=environ)
    refuse_problems(files.problems)
    assert files.project is not None  # noqa: S101 (a project that could not be read left problems)
    return files.project


def read_project_files(path: Path | str, *, environ: Mapping[str, str] | None = None) -> ProjectFiles:
    """Read ``errata.yaml`` and all product files, wrong ones as far as they can be read."""
    root = _find_root(Path(path))
    environ = os.environ if environ is None else environ
    secrets: dict[str, str] = {}
    # read first, because products are checked against the project
    project, top = _read_project(root, environ, secrets)
    reports = [top]
    problems: list[ProjectProblem] = []
    products: dict[str, Product] = {}
    are_complete = True
    for file in _list_product_files(root, problems):
        product, report = _read_product(file, root, project, environ, secrets)
        reports.append(report)
        problems += report.problems
        if product is None:
            are_complete = False
            continue
        if product.name in products:
            said = f'the product "{product.name}" is also in {products[product.name].path}; expected one file each'
            problems.append(ProjectProblem(product.path, 1, 1, said, "product"))
        products.setdefault(product.name, product)
    problems += find_shared_copies(products, {one.file: one.root for one in reports})
    if project is not None:
        if are_complete and products:
            check_reads(project, products, top)
        consumers = merge_named_consumers(project.consumers, products.values())
        unset = list_unset_variables(top.iterate_texts(), environ)
        project = replace(project, products=products, consumers=consumers, secrets=secrets, unset=unset)
        project = replace(project, credentials=list_written_credentials(project))
    misread = {one.file: frozenset(one.misread) for one in reports}
    return ProjectFiles(project, (*top.problems, *problems), misread)


def _find_root(given: Path) -> Path:
    try:
        root = (given.parent if given.name == PROJECT_FILE else given).resolve()
        if (root / PROJECT_FILE).is_file():
            return root
    except (OSError, ValueError):
        pass  # the name cannot be a directory
    near = _find_near_project(given)
    wanted = f"there is one in {near}" if near else f"expected a project directory or its {PROJECT_FILE}"
    message = f"no {PROJECT_FILE} in {given}; {wanted}"
    raise ProjectFileError(
        message,
        hint=f"errata -C {shlex.quote(str(near))} status"
        if near
        else "errata init makes a starter project; -C DIR picks another one",
        problems=[{"file": PROJECT_FILE, "line": None, "column": None, "message": message, "key": ""}],
    )


def _find_near_project(given: Path) -> Path | None:
    """A project above this directory or directly in it, for someone who is one directory off."""
    try:
        here = given.resolve()
        below = sorted(path.parent for path in here.glob(f"*/{PROJECT_FILE}")) if here.is_dir() else []
        return next((one for one in (*here.parents, *below) if (one / PROJECT_FILE).is_file()), None)
    except (OSError, ValueError):
        return None


def _read_project(
    root: Path, environ: Mapping[str, str], secrets: dict[str, str]
) -> tuple[Project | None, ProblemReport]:
    report = _read_tree(root / PROJECT_FILE, PROJECT_FILE, environ, is_allowed_anywhere, secrets)
    if report.root:
        refuse_secrets(report.root, rule_for_project, "write ${NAME} and set the variable", report)
    file = read_value(ProjectForm, report.root, report) if report.root else None
    return build_project(file, root, report) if file else None, report


def _read_product(
    path: Path,
    root: Path,
    project: Project | None,
    environ: Mapping[str, str],
    secrets: dict[str, str],
) -> tuple[Product | None, ProblemReport]:
    report = _read_tree(path, f"{PRODUCTS}/{path.name}", environ, is_data_location, secrets)
    if report.root:
        refuse_secrets(report.root, rule_for_product, "let the transform read it from its environment", report)
    file = read_value(ProductForm, report.root, report) if report.root else None
    return build_product(file, root, project, report) if file else None, report


def _read_tree(
    path: Path, name: str, environ: Mapping[str, str], allowed: Allowed, secrets: dict[str, str]
) -> ProblemReport:
    report = ProblemReport(name)
    try:
        with path.open("rb") as stream:
            root, duplicates = parse_tree(stream.read(MAX_BYTES + 1))
    except OSError as error:
        report.at_mark(None, f"cannot be read: {error.strerror}")
        return report
    except TreeError as error:
        report.at_mark(error.mark, error.message)
        return report
    report.root = root
    for mark, message, key in duplicates:
        report.at_mark(mark, message, key)
    secrets.update(resolve_variables(root, environ, allowed, report))
    return report


def _list_product_files(root: Path, problems: list[ProjectProblem]) -> list[Path]:
    folder = root / PRODUCTS
    if not folder.is_dir():
        return []
    for stray in sorted(folder.glob("[!.]*.yml")):
        said = "expected the ending .yaml; this file would not be read"
        problems.append(ProjectProblem(f"{PRODUCTS}/{stray.name}", None, None, said))
    return sorted(folder.glob("[!.]*.yaml"))
