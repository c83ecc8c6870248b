"""`errata late`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.late import render_late


def late(
    session: Session,
    product: Annotated[
        str | None, typer.Argument(metavar="[PRODUCT]", help="Product (default: all with the key late).")
    ] = None,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", min=1, help="Chunks at a time.")] = 2,
) -> int:
    """Look once for late data, for cron.

    Does what the key `late` of each product says: report stale partitions, also plan them, or also run and publish them
    under a standing approval. Partitions whose inputs changed a moment ago are left for a later look. Exit code 1 when
    something is left for a person, 0 when nothing is.

    Example: errata late fin.daily_revenue --as late-bot
    """
    with session.client() as client:
        with session.show_spinner("looking for late data"):
            view = client.late(product, parallel=parallel, as_=session.person)
        steps = [client.complete_commands(one.next, as_=session.person) for one in view.products if one.next]
    session.answer(view, lambda width: render_late(view, steps, width))
    return 0 if view.ok else 1
