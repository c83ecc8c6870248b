"""Commands about what was: runs and what was accepted when, and who wrote to a partition."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.command import command
from errata.cli.render_history import accepted_lines, commits_lines
from errata.cli.render_status import runs_lines
from errata.cli.session import Session
from errata.model.codec import plain
from errata.model.views import RunsView

__all__ = ["register"]

PANEL = "Look and tidy up"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "runs", PANEL)(runs)
    command(app, "history", PANEL)(history)


def runs(
    session: Session,
    what: Annotated[str | None, typer.Argument(metavar="PRODUCT|TABLE", help="Only runs of it.")] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only runs in it; repeatable.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Only runs that this person asked for.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only runs planned since: 2026-02-01T00:00Z.")
    ] = None,
    accepted_at: Annotated[
        str | None,
        typer.Option("--accepted-at", metavar="TIME", help="Instead: which run was the truth in each partition then."),
    ] = None,
) -> None:
    """List runs, or tell which was the truth at a time.

    Times have a zone. Answers come from the ledger alone: no table is opened.

    Example: errata runs fin.daily_revenue --accepted-at 2026-02-20T18:30Z
    """
    with session.client() as client:
        view = client.runs(what, states=state or (), person=by, since=since, accepted_at=accepted_at)
    session.answer(_data(view), lambda width: _lines(view, width))


def _data(view: RunsView) -> object:
    data = plain(view)
    return (
        {"runs": data["runs"]} if view.accepted_at is None else {key: data[key] for key in ("accepted_at", "accepted")}
    )


def _lines(view: RunsView, width: int) -> list[str]:
    if view.accepted_at is not None:
        return accepted_lines(view, width)
    return runs_lines(view.runs, width) if view.runs else ["no run fits"]


def history(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="catalog.namespace.table, or the product")],
    partition: Annotated[str, typer.Argument(metavar="PARTITION", help="2026-01-17, 2026-01, … or the value.")],
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="So many commits.")] = 20,
) -> None:
    """Show who wrote to a partition, newest first.

    From the table's own commits: Errata's publications, compactions and other jobs, each with the snapshot that stood
    right before it, which plan --restore takes.

    Example: errata history lake.fin.daily_revenue 2026-01-17
    """
    with session.client() as client:
        view = client.history(table, partition, most=most)
    session.answer(view, lambda width: commits_lines(view, width))
