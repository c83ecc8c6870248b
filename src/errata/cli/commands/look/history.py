"""`errata history`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.history import render_commits


def history(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="catalog.namespace.table, or the product")],
    partition: Annotated[str, typer.Argument(metavar="PARTITION", help="2026-01-17, 2026-01, … or the value.")],
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="So many commits.")] = 20,
) -> None:
    """Show who wrote to a partition, newest first.

    From the table's own commits: Errata's publications, compactions and other jobs, each with the snapshot that stood
    right before it, which plan --restore takes.

    Example: errata history lake.fin.daily_revenue 2026-01-17
    """
    with session.client() as client:
        view = client.history(table, partition, most=most)
    session.answer(view, lambda width: render_commits(view, width))
