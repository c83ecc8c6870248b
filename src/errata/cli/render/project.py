"""Render project checks, doctor results, jars and the starter project as text. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import format_columns, render_next, wrap
from errata.text.numbers import plural

if TYPE_CHECKING:
    from errata.views.checks import DoctorCheck


def format_problem(problem: Mapping[str, Any]) -> str:
    """``file:line: message``, which editors understand."""
    line = problem.get("line")
    place = problem["file"] if line is None else f"{problem['file']}:{line}"
    return f"{place}: {problem['message']}"


def render_check(
    problems: Sequence[Mapping[str, Any]], warnings: Sequence[Mapping[str, Any]], _width: int
) -> list[str]:
    """Every problem and warning on its own line, unbroken."""
    lines = [*map(format_problem, problems), *(f"{format_problem(one)} (warning)" for one in warnings)]
    told = f", {plural(len(warnings), 'warning')}" if warnings else ""
    if problems:
        return [*lines, f"✗ {plural(len(problems), 'problem')}{told}"]
    return [*lines, f"✓ the project files, transforms, tables and source files agree{told}"]


def render_doctor(checks: Sequence[DoctorCheck], width: int) -> list[str]:
    """What is present, what is missing, and how to get it."""
    name_width = max((len(check.name) for check in checks), default=0)
    lines: list[str] = []
    for check in checks:
        sign = "✗" if not check.ok else "–" if check.waiting else "✓"
        lines += wrap(str(check.found), width, f"{sign} {check.name.ljust(name_width)}  ")
        if check.hint and (check.waiting or not check.ok):
            lines.append(f"{' ' * (name_width + 4)}hint: {check.hint}")
    bad, waiting = sum(not check.ok for check in checks), sum(check.waiting for check in checks)
    if bad:
        return [*lines, "", plural(bad, "problem")]
    return [*lines, "", "nothing is wrong; what has – is not there yet" if waiting else "everything is there"]


def render_jars(jars: Sequence[Mapping[str, Any]], where: str, width: int) -> list[str]:
    """Every jar with the digest it was checked against."""
    rows = [(f"✓ {jar['coordinate']}", f"sha256 {jar['sha256']}") for jar in jars]
    return [*format_columns(rows, width), f"{plural(len(jars), 'jar')} verified in {where}"]


def render_starter(directory: str, files: Sequence[str], make_lake: str | None, _width: int) -> list[str]:
    """What was written, and the next steps; ``make_lake`` is the command that creates the lake of a sample product."""
    cd = "" if directory == "." else f"cd {shlex.quote(directory)}"
    kind = "an empty" if make_lake is None else "a starter"
    lines = [f"{kind} project in {directory}", *(f"  {name}" for name in files)]
    if make_lake is None:
        adopt = "errata adopt CATALOG.NAMESPACE.TABLE -o products/TABLE.yaml"
        return [*lines, *render_next(cd, "errata doctor", adopt)]
    plan = 'errata plan shop.daily_sales --from 2026-01-05 --to 2026-01-15 --reason "refunds were counted as sales"'
    return [*lines, *render_next(cd, make_lake, "errata check", plan)]
