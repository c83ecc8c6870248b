"""`errata check`."""

from __future__ import annotations

from errata.canonical import to_plain
from errata.cli.app.session import Session
from errata.cli.render.project import render_check
from errata.errors import ProjectFileError


def check(session: Session) -> int:
    """Check project files, transforms, tables and columns.

    Exit code 1 when anything is wrong. Every problem is shown with file and line.

    Example: errata check --json
    """
    try:
        with session.client() as client:
            problems = [to_plain(problem) for problem in client.check()]
    except ProjectFileError as error:
        problems = list(error.fields.get("problems", ()))
        if not problems:
            raise
    session.answer({"ok": not problems, "problems": problems}, lambda width: render_check(problems, width))
    return 1 if problems else 0
