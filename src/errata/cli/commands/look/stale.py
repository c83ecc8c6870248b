"""`errata stale`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.commands.plan.plan import End, PartitionList, Start
from errata.cli.render.late import render_stale
from errata.errors import UsageError


def stale(
    session: Session,
    product: Annotated[str | None, typer.Argument(metavar="[PRODUCT]", help="Product (default: all).")] = None,
    start: Start = None,
    end: End = None,
    partitions: PartitionList = None,
) -> int:
    """Show which partitions no longer follow from their inputs.

    Compares what runs and live jobs recorded with what the inputs, the code and the parents are now, from metadata and
    listings. A partition that nobody recorded anything about is judged by commit times, and counts as stale unless they
    show that it is current. Exit code 1 when a partition is stale, 0 when all are current or wait for their inputs.

    Example: errata stale fin.daily_revenue --from 2026-01-01 --to 2026-02-15
    """
    if product is None and (start or end or partitions):
        raise UsageError(
            "a range without a product was refused; expected a product, or no range",
            hint="errata stale PRODUCT --from D --to D",
        )
    if product is not None and partitions is None and (start is None) != (end is None):
        raise UsageError(
            "half a range was refused; expected --from and --to, or neither",
            hint=f"errata stale {product} --from D --to D",
        )
    with session.client() as client:
        view = client.stale(product, start, end, partitions=partitions)
        steps = [client.complete_commands(one.next, as_=session.person) for one in view.products if one.next]
    session.answer(view, lambda width: render_stale(view, steps, width))
    return 0 if view.ok else 1
