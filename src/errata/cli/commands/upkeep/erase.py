"""`errata erase`: record data subjects to erase, find what still shows them, and prove that nothing does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.audit import render_erasure_places, render_erasure_proof, render_redaction
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

    The list holds keyed hashes, no ids. From now on runs do not read rows of these subjects, the gate rejects
    candidates with them, candidates validated earlier are judged again first, and rollback leaves the rows out. Deletes
    no rows: owners of source and table do that. Ids are read from a file, because a shell would keep arguments in its
    history.

    Example: errata erase add --from requests.txt --reason "requests of March" --as dana
    """
    asked = _read_ids(session, source)
    with session.client() as client:
        view = client.erase(asked, reason=reason, as_=session.person)
    session.answer(view, lambda width: _render_listed(view, width))


def erase_where(
    session: Session,
    source: Annotated[str, typer.Option("--from", metavar="FILE", help="File with one id per line (- for stdin).")],
) -> None:
    """List what can still show data subjects, and until when.

    Looks at the tables of products that name subjects, with every branch, tag and old snapshot, at undo sets, staged
    output, quarantine, tables of corrections and versions, recordings, and copies in warehouses. What nobody can look
    at is listed as unknown. Changes nothing.

    Example: errata erase where --from requests.txt --as dana
    """
    asked = _read_ids(session, source)
    with session.client() as client:
        view = client.erase_where(asked, as_=session.person)
    session.answer(view, lambda width: render_erasure_places(view, width))


def erase_redact(
    session: Session,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log; without ids.")
    ],
) -> None:
    """Take everyone on the list out of recordings.

    Recorded files with their rows are replaced by files without them, both hashes stay on record, and the old bytes are
    deleted. Open runs that were to read such a file expire. Lines that cannot be read go with the file. Safe to repeat.

    Example: errata erase redact --reason "requests of March" --as dana
    """
    with session.client() as client:
        view = client.erase_redact(reason=reason, as_=session.person)
    session.answer(view, lambda width: render_redaction(view, width))


def erase_prove(
    session: Session,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log; without ids.")
    ],
    source: Annotated[str, typer.Option("--from", metavar="FILE", help="File with one id per line (- for stdin).")],
    leave: Annotated[
        list[str] | None,
        typer.Option("--leave", metavar="PLACE=WHY", help="Place that stays, and why; repeatable."),
    ] = None,
) -> None:
    """Record that nothing shows data subjects any more.

    Refused, with the list of erase where, as long as a place holds rows of them or cannot be looked at. The audit log
    keeps how many subjects, the snapshot of the list and the places that stay; no id.

    Example: errata erase prove --from requests.txt --reason "requests of March" --as dana
    """
    asked = _read_ids(session, source)
    with session.client() as client:
        stays = parse_pairs("--leave", leave)
        view = client.erase_prove(asked, reason=reason, leave=stays, as_=session.person)
    session.answer(view, lambda width: render_erasure_proof(view, width))


def _read_ids(session: Session, source: str) -> list[str]:
    try:
        text = sys.stdin.read() if source == "-" else (session.directory / Path(source).expanduser()).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8 text"
        raise UsageError(
            f"{source} was refused; expected a file with one id a line, found: {why}",
            state="nothing was changed",
            hint="write the ids into a file, or to standard input with --from -",
        ) from None
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
