"""`errata status`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from errata.canonical import to_plain
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import answer, find_campaign
from errata.cli.render.status import render_status
from errata.errors import UsageError
from errata.model.run import FINAL
from errata.text.escape import escape_text

REFRESH_SECONDS = 2.0

SomeRun = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only this run (default: all).")]


def status(
    session: Session,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="Run id or unique part (default: all runs).")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 2 seconds until Ctrl-C.")] = False,
) -> None:
    """Show all runs, or one run with its calendar.

    For one run it shows progress, chunks and their workers, approvals, publications and the next command. A campaign is
    shown as a tree of its members.

    Example: errata status bf-20260214-daily-revenue-7f3a21c0 --watch
    """
    if watch and session.json:
        raise UsageError("--watch with --json was refused; expected one of the two", hint="errata status --json")
    with session.client() as client:
        if watch:
            _watch_status(session, client, run)
            return
        if run is not None and (campaign := find_campaign(client, run)):
            answer(session, client.campaign(campaign, as_=session.person))
            return
        view = client.status(run)
    session.answer(_status_to_data(view), lambda width: render_status(view, width))


def _status_to_data(view: Any) -> Any:
    data = to_plain(view)
    lists = {key: data.pop(key, []) for key in ("runs", "campaigns", "reserved")}
    return data if view.run_id else lists


def _watch_status(session: Session, client: Any, run: str | None) -> None:
    from rich.live import Live
    from rich.text import Text

    def page() -> tuple[Text, str | None]:
        view = client.status(run)
        lines = (escape_text(session.localize_command(line)) for line in render_status(view, session.width))
        text = session.out.highlighter(Text("\n".join(lines)))
        return text, view.state

    try:
        first, state = page()
        with Live(first, console=session.out, auto_refresh=False, vertical_overflow="visible") as live:
            while state not in FINAL:
                time.sleep(REFRESH_SECONDS)
                text, state = page()
                live.update(text, refresh=True)
    except KeyboardInterrupt:
        return
