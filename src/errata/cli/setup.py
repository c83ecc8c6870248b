"""Commands around a project: init, adopt, check, doctor, jars."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from errata.cli.command import command
from errata.cli.render_project import check_lines, doctor_lines, jars_lines, starter_lines
from errata.cli.session import Session
from errata.errors import ErrataError, ProjectFileError, UsageError
from errata.model.codec import plain

__all__ = ["register"]

PANEL = "Set up"

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Which jars: spark (default), postgres, s3; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    jars = typer.Typer(help="The pinned Java archives in the user cache.", rich_markup_mode=None)
    command(app, "init", PANEL)(init)
    command(app, "adopt", PANEL)(adopt)
    command(app, "check", PANEL)(check)
    command(app, "doctor", PANEL)(doctor)
    command(jars, "fetch")(jars_fetch)
    command(jars, "check")(jars_check)
    command(jars, "archive")(jars_archive)
    app.add_typer(jars, name="jars", rich_help_panel=PANEL)


def init(
    session: Session,
    target: Annotated[str, typer.Argument(metavar="DIR", help="Where; here by default.", show_default=False)] = ".",
) -> None:
    """Write a starter project that runs, with its own tiny lake.

    Example: errata init shop
    """
    from errata.project.starter import write_starter

    place = session.directory / target
    files = write_starter(place)
    data = {"directory": str(place), "files": list(files)}
    session.answer(data, lambda width: starter_lines(str(place), files, width))


def adopt(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="catalog.namespace.table")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write it to a new file.")
    ] = None,
) -> None:
    """Draft a product file from an existing Iceberg table.

    Example: errata adopt lake.fin.daily_revenue -o products/daily_revenue.yaml
    """
    with session.client() as client:
        text: str = client.adopt(table)
    if output is not None:
        _write_new(session.directory / output, text)
        session.narrate(f"wrote {session.directory / output}; go through every CHANGE_ME, then: errata check")
    if session.json:
        session.write_json({"table": table, "file": output, "product_file": text})
    elif output is None:
        session.world.out.write(text)


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path} was refused; expected a file that does not exist yet", state="nothing was written"
        ) from None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not the name of a file"
        raise UsageError(f"{path} cannot be written: {why}", state="nothing was written") from problem


def check(session: Session) -> int:
    """Check project files, transforms, tables and columns.

    Exit code 1 when anything is wrong; every problem is named with file and line.

    Example: errata check --json
    """
    try:
        with session.client() as client:
            problems = [plain(problem) for problem in client.check()]
    except ProjectFileError as error:
        problems = list(error.fields.get("problems", ()))
        if not problems:
            raise
    session.answer({"ok": not problems, "problems": problems}, lambda width: check_lines(problems, width))
    return 1 if problems else 0


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
    from errata.cli.doctor import Finding, jars_finding

    return [Finding("project", ok=False, found=error.message, hint=error.hint), jars_finding()]


def jars_fetch(
    session: Session,
    group: Groups = None,
) -> None:
    """Download what is missing from the user cache, each file held against its SHA-256.

    Example: errata jars fetch --group s3
    """
    from errata.jars import fetch, listed

    wanted = listed(*(group or ()))
    with session.busy("fetching jars"):
        fetch(jars=wanted)
    _jars(session, wanted)


def jars_check(
    session: Session,
    group: Groups = None,
) -> None:
    """Verify the jars in the user cache without downloading anything.

    Example: errata jars check --group s3
    """
    from errata.jars import listed, require

    wanted = listed(*(group or ()))
    require(jars=wanted)
    _jars(session, wanted)


def jars_archive(session: Session, group: Groups = None) -> None:
    """Make the class archive that lets Java start in a third of the time; one minute, once per machine.

    An archive serves projects that need exactly these groups, with spark always among them.

    Example: errata jars archive --group s3
    """
    from errata.wiring.archive import prepare_archive

    with session.busy("making the class archive"):
        place = prepare_archive(*(group or ()))
    session.answer({"ok": True, "archive": str(place)}, lambda _width: [f"class archive {place}"])


def _jars(session: Session, wanted: Any) -> None:
    from errata.jars import default_cache_dir

    cache = default_cache_dir()
    jars = [{"coordinate": j.coordinate, "sha256": j.sha256, "path": str(j.path(cache))} for j in wanted]
    session.answer({"ok": True, "jars": jars}, lambda width: jars_lines(jars, str(cache), width))
