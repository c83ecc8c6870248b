"""`errata copies check`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.commands.plan.plan import End, PartitionList, Start
from errata.cli.render.consumers.copies import render_copies_check
from errata.errors import EngineError, ValidationRejected


def copies_check(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="Product whose copies are compared.")],
    start: Start = None,
    end: End = None,
    partitions: PartitionList = None,
) -> int:
    """Compare the copies of a product with the lake.

    By number and checksum of the rows of each partition: main at one snapshot, each copy in one statement. Partitions
    that live jobs wrote in the lake since their delivery have moved on and are not compared. Exit code 4 if a copy
    differs, 1 if one cannot be reached. Changes nothing.

    Example: errata copies check fin.daily_revenue --from 2026-01-01 --to 2026-02-15
    """
    with session.client() as client:
        with session.show_spinner(f"comparing copies of {product}"):
            view = client.check_copies(product, start, end, partitions=partitions)
        steps = [client.complete_commands(step, as_=session.person) for step in view.next]
    session.answer(view, lambda width: render_copies_check(view, steps, width))
    if any(one.differing for one in view.copies):
        return ValidationRejected.exit_code
    return 0 if view.ok else EngineError.exit_code
