"""`errata consumers check`, `confirm`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import DECLINED, Run
from errata.cli.app.session import Session
from errata.cli.commands.plan.plan import End, PartitionList, Start
from errata.cli.render.consumers.check import render_confirmed, render_consumers


def consumers_check(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="Product that would be published.")],
    start: Start = None,
    end: End = None,
    partitions: PartitionList = None,
) -> None:
    """Show what a publication does to the consumers.

    Reads the checkpoints of streams, and says which of them read the rows, pass them or stop. If a repaired checkpoint
    was prepared, it shows what a person does with it. Starts no JVM and changes nothing.

    Example: errata consumers check fin.daily_revenue --from 2026-01-01 --to 2026-02-15
    """
    with session.client() as client:
        view = client.check_consumers(product, start, end, partitions=partitions)
        steps = {
            one.name: [client.complete_commands(step, as_=session.person) for step in one.steps]
            for one in view.consumers
        }
    session.answer(view, lambda width: render_consumers(view, steps, width))


def consumers_confirm(
    session: Session,
    run: Run,
    consumer: Annotated[str, typer.Argument(metavar="CONSUMER", help="Stream, by its name in errata.yaml.")],
) -> int:
    """Confirm that a stream was stopped or moved.

    Before a publication: it is stopped (on_replace: stop). After it: it was started on the repaired copy of its
    checkpoint (on_replace: rewind). What its checkpoints show is checked. Its owner confirms. Asks first on a terminal.

    Example: errata consumers confirm bf-20260214-daily-revenue-7f3a21c0 fraud-stream --as kim
    """
    if not session.confirm([], f"Confirm that {consumer} was stopped, or started on its repaired checkpoint?"):
        return DECLINED
    with session.client() as client:
        view = client.confirm_consumer(run, consumer, as_=session.person)
        steps = [client.complete_commands(step, as_=session.person) for step in view.steps]
    session.answer(view, lambda width: render_confirmed(view, steps, width))
    return 0
