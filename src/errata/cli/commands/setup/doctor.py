"""`errata doctor`, also where there is no project to open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.project import render_doctor
from errata.errors import ErrataError

if TYPE_CHECKING:
    from errata.views.checks import DoctorCheck


def check_jars() -> DoctorCheck:
    """Whether the jars that Spark needs are in the user cache, verified."""
    from errata.jars import default_cache_dir, require_jars
    from errata.views.checks import DoctorCheck

    try:
        paths = require_jars()
    except ErrataError as error:
        return DoctorCheck("jars", ok=False, found=error.message, hint=error.hint)
    return DoctorCheck("jars", ok=True, found=f"{len(paths)} verified in {default_cache_dir()}", hint=None)


def doctor(
    session: Session,
    deep: Annotated[bool, typer.Option("--deep", help="Also start Java and test branches and tags.")] = False,
) -> int:
    """Check Java, Spark, jars, catalogs and the ledger.

    Exit code 1 when anything is missing; the output says how to fix it. --deep also connects to the catalogs from
    Java: it creates a table errata_probe_… in each, adds a branch and a tag, and drops the table again.

    Example: errata doctor --deep
    """
    try:
        with session.client() as client:
            checks: list[DoctorCheck] = list(client.doctor(deep=deep))
    except ErrataError as error:
        checks = _check_without_project(error)
    ok = all(check.ok for check in checks)
    session.answer({"ok": ok, "checks": checks}, lambda width: render_doctor(checks, width))
    return 0 if ok else 1


def _check_without_project(error: ErrataError) -> list[DoctorCheck]:
    """The checks that need no project, for a project that does not open."""
    from errata.views.checks import DoctorCheck

    return [DoctorCheck("project", ok=False, found=error.message, hint=error.hint), check_jars()]
