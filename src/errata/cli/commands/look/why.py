"""`errata why`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.why import render_why


def why(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table (catalog.namespace.table) or product.")],
    partition: Annotated[
        str, typer.Argument(metavar="PARTITION", help="Partition: 2026-01-17, 2026-01, … or its value.")
    ],
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="K=V", help="Key column of the rows to show; repeatable.")
    ] = None,
) -> None:
    """Show who changed a number, when and why.

    Shows the old and the new value. Write values of --key as `errata diff` prints them. A part of the key shows all
    matching rows, at most 20.

    Example: errata why lake.fin.daily_revenue 2026-01-17 --key account_id=A-10033
    """
    with session.client() as client:
        view = client.why(table, partition, key=parse_pairs("--key", key))
    session.answer(view, lambda width: render_why(view, width))
