"""Check that a product's transform exists, from its source and without importing it. Reads project code.

Importing would run the project's code in the process of the check. A query is parsed elsewhere
(:mod:`errata.planning.sql.check`).
"""

from __future__ import annotations

import ast
from pathlib import Path

from errata.model.product import Product
from errata.project.problems import ProblemReport, ProjectProblem
from errata.project.yaml.problem_texts import hint_nearest

_CALL = ("transform", "call")


def read_query(root: Path, product: Product) -> str | None:
    """The text of a SQL transform; None if its file cannot be read."""
    try:
        return (root / product.transform.call).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def check_transform(root: Path, product: Product, report: ProblemReport) -> None:
    """Report a missing file or function, or parameters that the product does not provide."""
    if product.transform.is_sql:
        _check_query_file(root, product, report)
        return
    module, _, name = product.transform.call.partition(":")
    stem = module.replace(".", "/")
    places = (f"{stem}.py", f"{stem}/__init__.py")
    place = next((place for place in places if (root / place).is_file()), None)
    if place is None:
        report.at(_CALL, f"expected the module in {places[0]} of the project")
        return
    try:
        tree = ast.parse((root / place).read_bytes(), filename=place)
    except SyntaxError as error:
        report.problems.append(ProjectProblem(place, error.lineno, error.offset, f"not Python: {error.msg}"))
        return
    except ValueError as error:
        report.problems.append(ProjectProblem(place, None, None, f"not Python: {error}"))
        return
    _check_function(tree, name, place, product, report)


def _check_query_file(root: Path, product: Product, report: ProblemReport) -> None:
    if read_query(root, product) is None:
        is_there = (root / product.transform.call).is_file()
        report.at(("transform", "sql"), "expected UTF-8 text" if is_there else "expected the file in the project")
    spelt: dict[str, str] = {}
    for source in product.inputs:
        if (other := spelt.setdefault(source.name.casefold(), source.name)) != source.name:
            report.at(("inputs", source.name), f"{other} differs in case only, which SQL ignores", found=False)


def _check_function(tree: ast.Module, name: str, place: str, product: Product, report: ProblemReport) -> None:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name in functions:
        _check_parameters(functions[name], place, product, report)
    elif name not in _list_bound_names(tree):
        report.at(_CALL, f'expected a function "{name}" in {place}{hint_nearest(name, functions)}')


def _check_parameters(function: ast.FunctionDef, place: str, product: Product, report: ProblemReport) -> None:
    takes = function.args
    named = [argument.arg for argument in (*takes.posonlyargs, *takes.args)]
    if not named and takes.vararg is None:
        said = f"{function.name}() takes nothing; expected ctx and then the inputs by name"
        report.problems.append(ProjectProblem(place, function.lineno, function.col_offset + 1, said))
        return
    defaulted = len(takes.defaults)
    required = named[1 : len(named) - defaulted] if defaulted else named[1:]
    required += [a.arg for a, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default is None]
    inputs = [source.name for source in product.inputs if source.transactions_of is None]
    for parameter in required:
        if parameter not in inputs:
            said = (
                f'{function.name}() takes "{parameter}", which is not an input of {product.name} ({", ".join(inputs)})'
            )
            report.problems.append(ProjectProblem(place, function.lineno, function.col_offset + 1, said))
    # a decorator may take more than the function that it wraps
    if takes.kwarg is None and not function.decorator_list:
        taken = {*named[1:], *(argument.arg for argument in takes.kwonlyargs)}
        for name in inputs:
            if name not in taken:
                said = f'{function.name}() lacks "{name}", an input of {product.name}; expected every input by name'
                report.problems.append(ProjectProblem(place, function.lineno, function.col_offset + 1, said))


def _list_bound_names(tree: ast.Module) -> set[str]:
    """Names a module imports or assigns; they may be functions, which only importing could tell."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
