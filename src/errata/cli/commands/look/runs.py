"""`errata runs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.canonical import to_plain
from errata.cli.app.session import Session
from errata.cli.render.history import render_accepted
from errata.cli.render.status import render_runs

if TYPE_CHECKING:
    from errata.views import RunsView


def runs(
    session: Session,
    what: Annotated[
        str | None, typer.Argument(metavar="PRODUCT|TABLE", help="Show only its runs (default: all).")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Show only runs in this state; repeatable.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Show only runs that this person planned.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Show only runs planned since: 2026-02-01T00:00Z.")
    ] = None,
    accepted_at: Annotated[
        str | None,
        typer.Option("--accepted-at", metavar="TIME", help="Show which run was current at this time."),
    ] = None,
) -> None:
    """List runs, or those current at a given time.

    Times need a zone. Reads only the ledger and opens no table.

    Example: errata runs fin.daily_revenue --accepted-at 2026-02-20T18:30Z
    """
    with session.client() as client:
        view = client.runs(what, states=state or (), person=by, since=since, accepted_at=accepted_at)
    session.answer(_runs_to_data(view), lambda width: _render_runs_view(view, width))


def _runs_to_data(view: RunsView) -> object:
    data = to_plain(view)
    return (
        {"runs": data["runs"]} if view.accepted_at is None else {key: data[key] for key in ("accepted_at", "accepted")}
    )


def _render_runs_view(view: RunsView, width: int) -> list[str]:
    if view.accepted_at is not None:
        return render_accepted(view, width)
    return render_runs(view.runs, width) if view.runs else ["no run fits"]
