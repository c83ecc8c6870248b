"""`errata impact`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.cli.commands.plan.plan import End, PartitionList, Start
from errata.cli.render.impact import render_dot, render_impact
from errata.errors import UsageError


def impact(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="Product whose partitions change.")],
    start: Start = None,
    end: End = None,
    partitions: PartitionList = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print a graph for Graphviz instead of a tree.")] = False,
) -> None:
    """Show what depends on some partitions of a product.

    Follows the inputs of the other products, with their grains and look-back, to the partitions that are computed from
    the named ones, directly or through other products. With `dbt.manifest` in errata.yaml it includes the models and
    exposures of dbt. Reads project files and table metadata, starts no JVM and changes nothing.

    Example: errata impact fin.daily_revenue --from 2026-01-01 --to 2026-02-15
    """
    if dot and session.json:
        raise UsageError("--dot together with --json was refused; expected one of the two")
    with session.client() as client:
        view = client.impact(product, start, end, partitions=partitions)
    session.answer(view, lambda width: render_dot(view) if dot else render_impact(view, width))
