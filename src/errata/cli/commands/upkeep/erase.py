"""`errata erase add`: record data subjects to erase."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.layout import flow, wrap
from errata.errors import UsageError
from errata.text.numbers import plural

if TYPE_CHECKING:
    from errata.views import ListedView


def erase_add(
    session: Session,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log; without ids.")
    ],
    source: Annotated[str, typer.Option("--from", metavar="FILE", help="File with one id per line (- for stdin).")],
) -> None:
    """Add data subjects to the list of erased ones.

    The list holds keyed hashes, no ids. From now on the gate rejects candidates with rows of these subjects,
    candidates validated earlier are not published, and rollback does not bring the rows back. Deletes no rows: owners
    of source and table do that. Ids are read from a file, because a shell would keep arguments in its history.

    Example: errata erase add --from requests.txt --reason "requests of March" --as dana
    """
    asked = _read_ids(session, source)
    with session.client() as client:
        view = client.erase(asked, reason=reason, as_=session.person)
    session.answer(view, lambda width: _render_listed(view, width))


def _read_ids(session: Session, source: str) -> list[str]:
    try:
        text = sys.stdin.read() if source == "-" else (session.directory / Path(source).expanduser()).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8 text"
        raise UsageError(f"{source} was refused; expected a file with one id a line, found: {why}") from None
    return [line for line in text.splitlines() if line.strip()]


def _render_listed(view: ListedView, width: int) -> list[str]:
    known = f", {view.already} on it already" if view.already else ""
    looks = [f"{name} ({', '.join(columns)})" for name, columns in view.products.items()]
    lines = [f"✓ {plural(view.added, 'subject')} added to {view.table}{known}"]
    lines += flow(looks, width, "  looked at by  ") if looks else wrap("no product names subjects yet", width, "! ")
    if view.judge_again:
        lines += flow(view.judge_again, width, "  judge again   ")
        lines.append(f"next: errata validate {view.judge_again[0]}")
    return lines
