"""`errata why`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.why import render_why


def why(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="catalog.namespace.table")],
    partition: Annotated[str, typer.Argument(metavar="PARTITION", help="2026-01-17, 2026-01, … or the value.")],
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="K=V", help="Rows by their key columns; repeatable.")
    ] = None,
) -> None:
    """Tell who changed a number, when, why, from what to what.

    Values of --key are accepted as errata diff prints them. A part of the key shows each row that fits, 20 at most.

    Example: errata why lake.fin.daily_revenue 2026-01-17 --key account_id=A-10033
    """
    with session.client() as client:
        view = client.why(table, partition, key=parse_pairs("--key", key))
    session.answer(view, lambda width: render_why(view, width))
