"""`errata plan`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.plan import render_plan
from errata.errors import UsageError


class Order(StrEnum):
    """Which partitions come first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SEQUENTIAL = "sequential"


Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in every record.")]
Start = Annotated[str | None, typer.Option("--from", metavar="D", help="First partition.")]
End = Annotated[str | None, typer.Option("--to", metavar="D", help="First partition after the range.")]
PartitionList = Annotated[
    str | None,
    typer.Option("--partitions", metavar="LIST", help="Instead: 2026-01-03,2026-01-10..2026-01-14 (inclusive)."),
]
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help="Kind of correction; recorded with the run.")]
OrderOption = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="Which partitions come first: newest, or sequential when the product reads its own output.",
        show_default=False,
    ),
]
Canary = Annotated[
    str, typer.Option("--canary", metavar="N|LIST", help="So many partitions, or these, go first and must pass.")
]
ProveDeterminism = Annotated[
    int, typer.Option("--prove-determinism", metavar="N", min=0, help="Compute N sample chunks twice, and compare.")
]
Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="WHEN", help="8h, or 2026-11-17T06:00Z: how many cores, for how much?"),
]
Restore = Annotated[
    str | None,
    typer.Option("--restore", metavar="WHEN", help="Put back what the table held: a snapshot, a tag or a time."),
]
Supersede = Annotated[str | None, typer.Option("--supersede", metavar="RUN", help="The run this replaces.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--override", metavar="RULE=WHY", help="Set a guardrail aside, by name; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Judge and show; fix nothing.")]


def plan(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="The product to correct.")],
    reason: Reason,
    start: Start = None,
    end: End = None,
    partitions: PartitionList = None,
    kind: Kind = "restate",
    order: OrderOption = None,
    canary: Canary = "0",
    prove_determinism: ProveDeterminism = 0,
    deadline: Deadline = None,
    restore: Restore = None,
    supersede: Supersede = None,
    override: Overrides = None,
    dry_run: DryRun = False,
) -> None:
    """Resolve, judge and fix a correction for approval.

    Prints what would be read, run and written, every guardrail verdict, and the digest to approve. The same request on
    the same world gives the same run. A plan that a guardrail refuses fixes nothing: exit code 3.

    With --restore no transform runs: each partition gets what the table itself held at a snapshot, a tag or a time
    (errata history shows them), through the same gate, approval and release.

    Example: errata plan fin.daily_revenue --from 2026-01-01 --to 2026-02-15 --reason "FX inverted (FIN-231)"
    """
    if partitions is None and (start is None or end is None):
        raise UsageError(
            "a plan without a scope was refused; expected --from and --to, or --partitions",
            hint=f'errata plan {product} --from 2026-01-01 --to 2026-02-01 --reason "…"',
        )
    if partitions is not None and (start is not None or end is not None):
        raise UsageError("--partitions together with --from or --to was refused; expected one of the two")
    overrides = parse_pairs("--override", override)
    with session.client() as client, session.show_spinner(f"planning {product}"):
        view = client.plan(
            product,
            start,
            end,
            partitions=partitions,
            reason=reason,
            kind=kind,
            order=order.value if order else None,
            canary=int(canary) if canary.isdecimal() and len(canary) < 10 else canary,
            prove_determinism=prove_determinism,
            deadline=deadline,
            supersede=supersede,
            overrides=overrides,
            restore=restore,
            dry_run=dry_run,
            as_=session.person,
        )
    session.answer(view, lambda width: render_plan(view, width, already=view.already))
