"""`errata deliver`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.copy_exit import CONFLICT, OWED, WRITTEN_BY_OTHERS
from errata.cli.app.options import DECLINED
from errata.cli.app.session import Session
from errata.cli.render.consumers.copies import render_baseline
from errata.cli.render.consumers.outbox import render_delivery
from errata.errors import UsageError


def deliver(
    session: Session,
    of: Annotated[
        str | None, typer.Argument(metavar="[PRODUCT|RUN]", help="Product or run (default: everything).")
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="Start no payment after this.")] = "5min",
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Accept what the product's copies hold as their beginning.")
    ] = False,
    partitions: Annotated[
        str | None, typer.Option("--partitions", metavar="LIST", help="With --baseline: only these.")
    ] = None,
    copy: Annotated[
        str | None, typer.Option("--copy", metavar="WAREHOUSE:TABLE", help="With --baseline: only this copy.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="With --baseline: why (default: only show).")
    ] = None,
) -> int:
    """Pay what is owed after decisions and publications.

    Settles publications that a killed process left open, then pays: correction rows, views, messages, refreshes.
    Failed attempts are repeated with growing pauses as long as there is time. Exit code 0 when nothing is owed any
    more, 7 when something still is or has failed, 5 when others wrote a copy or keep it locked. Safe to run at any
    time and from several places, such as cron.

    --baseline compares the copies of a product with main. With --reason it accepts what they hold, on record: from then
    on, rows that somebody else changes are noticed. It changes no row.

    Example: errata deliver fin.daily_revenue --timeout 1min
    """
    if baseline:
        return _accept_baseline(session, of, partitions, copy, reason)
    if partitions or copy or reason:
        raise UsageError("--partitions, --copy or --reason was refused; expected them with --baseline")
    with session.client() as client:
        view = client.deliver(of, timeout=timeout, as_=session.person)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_delivery(view, steps, width))
    codes = {item.code for item in view.items}
    return 0 if view.ok else CONFLICT if codes & WRITTEN_BY_OTHERS else OWED


def _accept_baseline(
    session: Session, product: str | None, partitions: str | None, copy: str | None, reason: str | None
) -> int:
    if product is None:
        raise UsageError("--baseline without a product was refused", hint="errata deliver PRODUCT --baseline")
    with session.client() as client:
        if reason and session.asks:
            shown = client.baseline(product, partitions=partitions, copy=copy, as_=session.person)
            if not session.confirm(render_baseline(shown, (), session.width), "accept what they hold?"):
                return DECLINED
        with session.show_spinner(f"measuring copies of {product}"):
            view = client.baseline(product, partitions=partitions, copy=copy, reason=reason, as_=session.person)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_baseline(view, steps, width))
    return 0
