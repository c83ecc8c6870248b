"""Commands that look, and the one that tidies up: status, why, cleanup."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from errata.cli.command import command
from errata.cli.options import pairs
from errata.cli.render_audit import cleanup_lines
from errata.cli.render_status import status_lines
from errata.cli.render_why import why_lines
from errata.cli.session import Session
from errata.cli.working import DECLINED
from errata.errors import UsageError
from errata.model.codec import plain
from errata.model.run import FINAL
from errata.model.visible import visible

__all__ = ["register"]

PANEL = "Look and tidy up"
REFRESH_SECONDS = 2.0

SomeRun = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only this run.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "status", PANEL)(status)
    command(app, "why", PANEL)(why)
    command(app, "cleanup", PANEL)(cleanup)


def status(
    session: Session,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="One run; all of them else.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every 2 seconds; Ctrl-C ends it.")] = False,
) -> None:
    """Show all runs, or one with its calendar.

    Of one run: progress, chunks and who works on them, approvals, publications, and what to type next.

    Example: errata status bf-20260214-daily-revenue-7f3a21c0 --watch
    """
    if watch and session.json:
        raise UsageError("--watch with --json was refused; expected one of the two", hint="errata status --json")
    with session.client() as client:
        if watch:
            _watch(session, client, run)
            return
        view = client.status(run)
    session.answer(_status_data(view), lambda width: status_lines(view, width))


def _status_data(view: Any) -> Any:
    data = plain(view)
    return {key: item for key, item in data.items() if key != "runs"} if view.run_id else {"runs": data["runs"]}


def _watch(session: Session, client: Any, run: str | None) -> None:
    from rich.live import Live
    from rich.text import Text

    def page() -> tuple[Text, str | None]:
        view = client.status(run)
        lines = (visible(session.local(line)) for line in status_lines(view, session.width))
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


def why(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="catalog.namespace.table")],
    partition: Annotated[str, typer.Argument(metavar="PARTITION", help="2026-01-17, 2026-01, … or the value.")],
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="K=V", help="Rows by their key columns; repeatable.")
    ] = None,
) -> None:
    """Tell who changed a number, when, why, from what to what.

    Values of --key are accepted as errata diff prints them. A part of the key shows each row that fits, 20 at most.

    Example: errata why lake.fin.daily_revenue 2026-01-17 --key account_id=A-10033
    """
    with session.client() as client:
        view = client.why(table, partition, key=pairs("--key", key))
    session.answer(view, lambda width: why_lines(view, width))


def cleanup(
    session: Session,
    run: SomeRun = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go.")] = False,
) -> int:
    """Remove what nothing needs any more.

    Branches and tags of finished runs; what an open undo window needs is kept. Shows them and asks on a terminal.

    Example: errata cleanup --run bf-20260214-daily-revenue-7f3a21c0 --dry-run
    """
    with session.client() as client:
        if session.asks and not dry_run:
            would = client.cleanup(run, dry_run=True, as_=session.person)
            if would.removed and not session.confirm(cleanup_lines(would, session.width), "remove them?"):
                return DECLINED
        view = client.cleanup(run, dry_run=dry_run, as_=session.person)
    session.answer(view, lambda width: cleanup_lines(view, width))
    return 0
