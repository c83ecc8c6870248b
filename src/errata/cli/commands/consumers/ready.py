"""`errata ready`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.consumers.ready import render_ready

NOT_READY = 7
"""Exit code when a partition is held, being published or settling."""


def ready(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Governed table or its product.")],
    partitions: Annotated[
        list[str] | None, typer.Argument(metavar="[PARTITION]...", help="Partitions or ranges (default: all).")
    ] = None,
    wait: Annotated[str, typer.Option("--wait", metavar="LENGTH", help="Wait until they are ready.")] = "0s",
) -> int:
    """Check whether partitions may be read.

    Exit code 0 when they may, 7 while one is held, being published or settling. A partition that is only announced may
    be read: it is as it was. Reads the ledger and nothing else, so it is cheap to ask often. The answer is true for
    this moment; read the snapshot that it names, and what is published meanwhile cannot mix with what you read.

    Example: errata ready fin.daily_revenue 2026-01-01..2026-01-07 --wait 30min
    """
    with session.client() as client:
        view = client.ready(table, partitions, wait=wait)
    session.answer(view, lambda width: render_ready(view, width))
    return 0 if view.ready else NOT_READY
