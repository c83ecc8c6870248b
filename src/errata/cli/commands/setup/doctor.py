"""What the doctor can say when there is no project to open. Touches: the jar cache, to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from errata.cli.app.session import Session
from errata.cli.render.project import doctor_lines
from errata.errors import ErrataError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    hint: str | None = None


def jars_finding() -> Finding:
    """Whether the jars that Spark needs are in the user cache, verified."""
    from errata.jars import default_cache_dir, require

    try:
        paths = require()
    except ErrataError as error:
        return Finding("jars", ok=False, found=error.message, hint=error.hint)
    return Finding("jars", ok=True, found=f"{len(paths)} verified in {default_cache_dir()}")


def doctor(
    session: Session,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also start Java, and try branches and tags on a table.")
    ] = False,
) -> int:
    """Look at Java, Spark, jars, the catalogs and the ledger.

    Exit code 1 when anything is missing, with what to do about it. --deep asks the catalogs from Java as well. It makes
    a table errata_probe_… in each, gives it a branch and a tag, and drops it again.

    Example: errata doctor --deep
    """
    try:
        with session.client() as client:
            checks: list[Any] = list(client.doctor(deep=deep))
    except ErrataError as error:
        checks = _without_project(error)
    ok = all(check.ok for check in checks)
    session.answer({"ok": ok, "checks": checks}, lambda width: doctor_lines(checks, width))
    return 0 if ok else 1


def _without_project(error: ErrataError) -> list[Any]:
    """What can be said when the project does not open."""

    return [Finding("project", ok=False, found=error.message, hint=error.hint), jars_finding()]
