"""`errata ack`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import DECLINED, Run
from errata.cli.app.session import Session
from errata.cli.render.consumers.ready import render_acknowledged, render_hold


def acknowledge(
    session: Session,
    run: Run,
    consumer: Annotated[str, typer.Argument(metavar="CONSUMER", help="Consumer that is held.")],
    hold: Annotated[
        str | None, typer.Option("--hold", metavar="ID", help="Only this hold (default: the open one).")
    ] = None,
) -> int:
    """Acknowledge the hold of a consumer.

    Its owner says that nobody reads until the publication is done: the person that errata.yaml names, or one of the
    team. An acknowledgement counts for one hold and expires with it. Programs pass --hold with the id from the message,
    so that a repeated call acknowledges no later hold. Asks first on a terminal.

    Example: errata ack bf-20260214-daily-revenue-7f3a21c0 exec-dashboard
    """
    with session.client() as client:
        if session.asks:
            shown = client.show_hold(run, consumer, hold=hold)
            if not session.confirm(render_hold(shown, session.width), "acknowledge it?"):
                return DECLINED
            hold = shown.hold_id  # a yes is to what was shown
        view = client.acknowledge(run, consumer, hold=hold, as_=session.person)
    session.answer(view, lambda width: render_acknowledged(view, width))
    return 0
