"""`errata check`."""

from __future__ import annotations

from typing import Any

from errata.canonical import to_plain
from errata.cli.app.session import Session
from errata.cli.render.project import render_check
from errata.errors import ProjectFileError


def check(session: Session) -> int:
    """Check project files, transforms, tables and source files.

    Exit code 1 when anything is wrong. Every problem is shown with file and line, also those behind a file that cannot
    be loaded. Warnings do not change the exit code.

    Example: errata check --json
    """
    try:
        with session.client() as client:
            found = [to_plain(problem) for problem in client.check()]
    except ProjectFileError as error:
        found = _check_refused_files(session, error)
    problems = [one for one in found if one.get("level") != "warning"]
    warnings = [one for one in found if one.get("level") == "warning"]
    session.answer(
        {"ok": not problems, "problems": problems, "warnings": warnings},
        lambda width: render_check(problems, warnings, width),
    )
    return 1 if problems else 0


def _check_refused_files(session: Session, error: ProjectFileError) -> list[dict[str, Any]]:
    """All problems of a project that does not load; only those of the error if there are no files to read."""
    from errata.wiring.check import check_files

    if not error.fields.get("problems"):
        raise error
    try:
        return [to_plain(problem) for problem in check_files(session.directory)]
    except ProjectFileError:
        return list(error.fields["problems"])
