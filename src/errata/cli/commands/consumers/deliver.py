"""`errata deliver`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.consumers.outbox import render_delivery

OWED = 7
"""Exit code when something is still owed."""


def deliver(
    session: Session,
    of: Annotated[
        str | None, typer.Argument(metavar="[PRODUCT|RUN]", help="Product or run (default: everything).")
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="Start no payment after this.")] = "5min",
) -> int:
    """Pay what is owed after decisions and publications.

    Settles publications that a killed process left open, then pays: correction rows, views, messages, refreshes.
    Failed attempts are repeated with growing pauses as long as there is time. Exit code 0 when nothing is owed any
    more, 7 when something still is or has failed. Safe to run at any time and from several places, such as cron.

    Example: errata deliver fin.daily_revenue --timeout 1min
    """
    with session.client() as client:
        view = client.deliver(of, timeout=timeout, as_=session.person)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_delivery(view, steps, width))
    return 0 if view.ok else OWED
