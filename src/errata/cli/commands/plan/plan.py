"""`errata plan`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.render.plan import DRY_RUN, render_plan
from errata.errors import UsageError


class Order(StrEnum):
    """Order in which partitions are computed."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SEQUENTIAL = "sequential"


Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the audit log.")]
Start = Annotated[str | None, typer.Option("--from", metavar="D", help="First partition of the range.")]
End = Annotated[str | None, typer.Option("--to", metavar="D", help="End of the range (exclusive).")]
PartitionList = Annotated[
    str | None,
    typer.Option(
        "--partitions", metavar="LIST", help="List instead of a range: 2026-01-03,2026-01-10..2026-01-14 (inclusive)."
    ),
]
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help="Kind of correction, recorded with the run.")]
OrderOption = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="Compute order (default: newest; sequential if output is input).",
        show_default=False,
    ),
]
Canary = Annotated[
    str, typer.Option("--canary", metavar="N|LIST", help="Compute N partitions, or these, first as canary.")
]
ProveDeterminism = Annotated[
    int, typer.Option("--prove-determinism", metavar="N", min=0, help="Compute N sample chunks twice and compare.")
]
Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="WHEN", help="Estimate cores and cost for 8h, or 2026-11-17T06:00Z."),
]
Restore = Annotated[
    str | None,
    typer.Option("--restore", metavar="WHEN", help="Restore the table's data from a snapshot, tag or time."),
]
Supersede = Annotated[str | None, typer.Option("--supersede", metavar="RUN", help="Replace this run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--override", metavar="RULE=WHY", help="Override a guardrail, with a reason; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan without saving it.")]


def plan(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="Product to correct.")],
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
    """Plan a correction and submit it for approval.

    Prints what will be read, run and written, the result of every guardrail, and the digest to approve. The same
    request with unchanged code, inputs and table gives the same run. A plan that fails a guardrail is not saved (exit
    code 3).

    --restore runs no transform. Each partition gets the data that the table held at a snapshot, tag or time (see
    `errata history`), through the same gate, approval and release.

    Example: errata plan fin.daily_revenue --from 2026-01-01 --to 2026-02-15 --reason "FX inverted (FIN-231)"
    """
    if partitions is None and (start is None or end is None):
        raise UsageError(
            "a plan without a scope was refused; expected --from and --to, or --partitions",
            state="nothing was planned",
            hint=f'errata plan {product} --from 2026-01-01 --to 2026-02-01 --reason "…"',
        )
    if partitions is not None and (start is not None or end is not None):
        raise UsageError(
            "--partitions together with --from or --to was refused; expected one of the two",
            state="nothing was planned",
            hint="errata plan --help",
        )
    overrides = parse_pairs("--override", override)
    with session.client() as client:
        with session.show_spinner(f"planning {product}"):
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
        if view.state == DRY_RUN:
            session.answer(view, lambda width: render_plan(view, width))
        else:
            session.answer_about(client, view, lambda width: render_plan(view, width, already=view.already))
