"""`errata jars fetch`, `check`, `archive`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from errata.cli.app.session import Session
from errata.cli.render.project import render_jars

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Jars: spark, postgres, s3; repeatable (default: spark)."),
]


def jars_fetch(
    session: Session,
    group: Groups = None,
) -> None:
    """Download missing jars and verify their SHA-256.

    Example: errata jars fetch --group s3
    """
    from errata.jars import fetch_jars, list_jars

    wanted = list_jars(*(group or ()))
    with session.show_spinner("fetching jars"):
        fetch_jars(jars=wanted)
    _print_jars(session, wanted)


def jars_check(
    session: Session,
    group: Groups = None,
) -> None:
    """Verify the jars in the user cache; download nothing.

    Example: errata jars check --group s3
    """
    from errata.jars import list_jars, require_jars

    wanted = list_jars(*(group or ()))
    require_jars(jars=wanted)
    _print_jars(session, wanted)


def jars_archive(session: Session, group: Groups = None) -> None:
    """Build a class archive that makes Java start faster.

    Java then starts in a third of the time. Building takes a minute, once per machine. An archive works for projects
    that need exactly these groups; spark is always included.

    Example: errata jars archive --group s3
    """
    from errata.wiring.class_archive import prepare_archive

    with session.show_spinner("making the class archive"):
        place = prepare_archive(*(group or ()))
    session.answer({"ok": True, "archive": str(place)}, lambda _width: [f"class archive {place}"])


def _print_jars(session: Session, wanted: Any) -> None:
    from errata.jars import default_cache_dir

    cache = default_cache_dir()
    jars = [{"coordinate": j.coordinate, "sha256": j.sha256, "path": str(j.path(cache))} for j in wanted]
    session.answer({"ok": True, "jars": jars}, lambda width: render_jars(jars, str(cache), width))
