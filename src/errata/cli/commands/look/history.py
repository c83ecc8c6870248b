"""`errata history`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.history import render_commits


def history(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table (catalog.namespace.table) or product.")],
    partition: Annotated[
        str, typer.Argument(metavar="PARTITION", help="Partition: 2026-01-17, 2026-01, … or its value.")
    ],
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="Number of commits to show.")] = 20,
) -> None:
    """Show who wrote to a partition, newest first.

    Reads the table's own commits: publications by Errata, compactions and other jobs. Each is shown with the snapshot
    right before it, which you can pass to plan --restore.

    Example: errata history lake.fin.daily_revenue 2026-01-17
    """
    with session.client() as client:
        view = client.history(table, partition, most=most)
    session.answer(view, lambda width: render_commits(view, width))
