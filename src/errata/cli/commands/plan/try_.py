"""`errata try`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.render.try_partition import render_try, suggest_after_trial


def try_(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="Product to compute.")],
    partitions: Annotated[
        str, typer.Argument(metavar="PARTITION", help="Partition, or a list: 2026-01-03,2026-01-10..2026-01-14.")
    ],
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Number of sample rows to show.")] = 10,
) -> None:
    """Compute a partition and show what would change.

    Uses the current code and inputs. Shows the result of the gate and the differing rows. Creates no run and writes
    nothing.

    Example: errata try fin.daily_revenue 2026-01-17
    """
    # the spinner first: opening the project takes a moment
    with session.show_spinner(f"trying {product}"), session.client() as client:
        view = client.try_out(product, partitions, sample=sample, as_=session.person)
        following = client.complete_commands(suggest_after_trial(view), as_=session.person)
    if session.json:
        session.write_json(view.data())
    else:
        session.page(render_try(view, session.width, following))
