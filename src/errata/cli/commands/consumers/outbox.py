"""`errata outbox`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import DECLINED
from errata.cli.app.session import Session
from errata.cli.render.consumers.outbox import render_item, render_outbox, render_outbox_decision

Item = Annotated[str, typer.Argument(metavar="ID", help="Number of the item.")]


def outbox_list(
    session: Session,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Only of this run.")] = None,
    all_items: Annotated[bool, typer.Option("--all", help="Also show what is paid or waived.")] = False,
) -> int:
    """Show what is owed after decisions and publications.

    The word list may be left out: errata outbox RUN. An item is paid by run, publish, rollback and deliver, never by
    commands that only look. One that failed has used up its attempts and stops only its own queue.

    Example: errata outbox list bf-20260214-daily-revenue-7f3a21c0
    """
    with session.client() as client:
        view = client.outbox(run, all=all_items)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_outbox(view, steps, width))
    return 0


def outbox_retry(
    session: Session,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Numbers of the items.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All items that failed.")] = False,
) -> int:
    """Let items be tried at once, with all attempts again.

    Nothing is paid by this command: errata deliver does.

    Example: errata outbox retry --failed && errata deliver
    """
    with session.client() as client:
        view = client.retry_outbox(ids or (), failed=failed, as_=session.person)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_outbox_decision(view, steps, width))
    return 0


def outbox_waive(
    session: Session,
    item: Item,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is given up.")],
    ready: Annotated[bool, typer.Option("--ready", help="Let readers continue all the same.")] = False,
) -> int:
    """Give up paying an item.

    It is not tried again, but what it would have done stays undone: a consumer that was not refreshed is not recovered,
    and the record says who decided that and why. A later publication or rollback of its partitions owes it again.

    Example: errata outbox waive 17 --reason "the dashboard is switched off"
    """
    with session.client() as client:
        if session.asks:
            found = [one for one in client.outbox(all=True).items if one.id == item]
            shown = [line for one in found for line in render_item(one, session.width)]
            if shown and not session.confirm(shown, "give it up?"):
                return DECLINED
        view = client.waive_outbox(item, reason=reason, ready=ready, as_=session.person)
    session.answer(view, lambda width: render_outbox_decision(view, view.next, width))
    return 0
