"""The command that makes the page a reviewer signs: report. Touches: the file it is told to write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from errata.cli.options import Partitions, Run
from errata.cli.session import Session
from errata.errors import UsageError
from errata.model.human import size

__all__ = ["report"]

_BEGIN = b"<!doctype html>"


def report(
    session: Session,
    run: Run,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write the page there; without it, to stdout.")
    ] = None,
    partitions: Partitions = None,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="So many differing rows.")] = 20,
) -> None:
    """Write one HTML page for the person who answers for the numbers.

    Scope, people, verdicts, calendar, charts, column changes, movements, sampled rows. It needs no network.

    Example: errata report bf-20260214-daily-revenue-7f3a21c0 -o report.html
    """
    with session.client() as client, session.busy(f"reporting {run}"):
        view = client.report(run, partitions=partitions, sample=sample)
    if output is None and session.json:
        session.write_json(view.data())
        return
    from errata.report.page import page

    text = page(view)
    if output is None:
        session.world.out.write(text)
        return
    place = session.directory / output
    _write(place, text)
    if session.json:
        session.write_json({**view.data(), "file": output})
    else:
        session.page([f"wrote {place}   {size(len(text.encode()))}"])


def _write(place: Path, text: str) -> None:
    """Whole or not at all; a report of an earlier moment is replaced, and nothing else."""
    draft: Path | None = None
    try:
        _refuse_other(place)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".report-", suffix=".html")
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        draft.chmod(0o644)
        os.replace(draft, place)
    except (OSError, ValueError) as problem:
        if draft is not None:
            draft.unlink(missing_ok=True)
        why = getattr(problem, "strerror", None) or "not the name of a file"
        raise UsageError(f"{place} cannot be written: {why}", state="nothing was changed") from problem


def _refuse_other(place: Path) -> None:
    """A slip of the hand must not cost someone a table, a ledger or a project file."""
    if not place.exists():
        return
    with place.open("rb") as stream:
        if stream.read(len(_BEGIN)) == _BEGIN:
            return
    raise UsageError(
        f"{place} was refused; expected a new file or a report of before, found another kind of file",
        state="nothing was changed",
    )
