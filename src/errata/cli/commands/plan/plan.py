"""`errata plan`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from errata.cli.app.options import parse_pairs
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import answer_plan, refuse_options
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
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help="Kind of run, such as restate, attest or reconcile.")]
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
RestoreFrom = Annotated[
    str | None,
    typer.Option("--restore-from", metavar="WHERE", help="Restore from another table, a copy or a source."),
]
Supersede = Annotated[str | None, typer.Option("--supersede", metavar="RUN", help="Replace this run or campaign.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--override", metavar="RULE=WHY", help="Override a guardrail, with a reason; repeatable."),
]
ExpectedRows = Annotated[
    str | None,
    typer.Option("--expected-rows", metavar="SPAN", help="Rows the run may write: N, A..B, A.. or ..B."),
]
Copies = Annotated[bool, typer.Option("--copies", help="Repair copies that differ from what is accepted.")]
CopyNames = Annotated[
    list[str] | None,
    typer.Option("--copy", metavar="WAREHOUSE:TABLE", help="With --copies: only this copy; repeatable."),
]
Stale = Annotated[bool, typer.Option("--stale", help="Plan what is stale, of the range or of all.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show each stage and what it reads and writes.")]
Cascade = Annotated[bool, typer.Option("--cascade", help="Also correct every product that reads it.")]
Only = Annotated[str | None, typer.Option("--only", metavar="A,B", help="With --cascade: only these of its readers.")]
Except = Annotated[str | None, typer.Option("--except", metavar="C", help="With --cascade: leave these out.")]
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
    restore_from: RestoreFrom = None,
    supersede: Supersede = None,
    override: Overrides = None,
    expected_rows: ExpectedRows = None,
    copies: Copies = False,
    copy: CopyNames = None,
    stale: Stale = False,
    cascade: Cascade = False,
    only: Only = None,
    without: Except = None,
    explain: Explain = False,
    dry_run: DryRun = False,
) -> None:
    """Plan a correction and submit it for approval.

    Prints what will be read, run and written, the result of every guardrail, and the digest to approve. The same
    request with unchanged code, inputs and table gives the same run. A plan that fails a guardrail is not saved (exit
    code 3).

    --restore runs no transform. Each partition gets the data that the table held at a snapshot, tag or time (see
    `errata history`), through the same gate, approval and release.

    --copies (--kind repair) computes nothing and leaves main alone: `errata run` replaces partitions of copies that
    `errata copies check` names by what is accepted, if they still hold what they held at planning.

    --stale plans the partitions that `errata stale` calls stale, and no others.

    --cascade plans a campaign: the product and every product that reads it, directly or through others, approved
    together under one digest. Each member is computed when what it reads is published.

    Example: errata plan fin.daily_revenue --from 2026-01-01 --to 2026-02-15 --reason "FX inverted (FIN-231)"
    """
    is_half = (start is None) != (end is None)
    if partitions is None and (start is None or end is None) and (not stale or is_half):
        half = f"a range without {'--from' if start is None else '--to'}" if is_half else "a plan without a scope"
        raise UsageError(
            f"{half} was refused; expected --from and --to, or --partitions",
            state="nothing was planned",
            hint=f'errata plan {product} --from {start or "D"} --to {end or "D"} --reason "…"',
        )
    if partitions is not None and (start is not None or end is not None):
        raise UsageError(
            "--partitions together with --from or --to was refused; expected one of the two",
            state="nothing was planned",
            hint="errata plan --help",
        )
    overrides = parse_pairs("--override", override)
    if copy and not copies:
        raise UsageError("--copy was refused; expected --copies with it", state="nothing was planned")
    if cascade:
        refuse_options(
            "a plan with --cascade",
            expected_rows=expected_rows,
            explain=explain,
            deadline=deadline,
            copies=copies or None,
            restore_from=restore_from,
        )
    elif only is not None or without is not None:
        raise UsageError("--only and --except were refused; expected --cascade with them", state="nothing was planned")
    with session.client() as client:
        if cascade:
            with session.show_spinner(f"planning {product} and what reads it"):
                campaign = client.plan_campaign(
                    product, start, end, partitions=partitions, reason=reason, only=_split(only),
                    without=_split(without) or (), kind=kind, order=order.value if order else None,
                    canary=int(canary) if canary.isdecimal() and len(canary) < 10 else canary, restore=restore,
                    supersede=supersede, overrides=overrides, stale=stale, dry_run=dry_run, as_=session.person,
                )  # fmt: skip
            answer_plan(session, client, campaign)
            return
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
                restore_from=restore_from,
                expected_rows=expected_rows,
                copies=tuple(copy or ()) if copies else None,
                stale=stale,
                explain=explain,
                dry_run=dry_run,
                as_=session.person,
            )
        if view.state == DRY_RUN:
            session.answer(view, lambda width: render_plan(view, width))
        else:
            session.answer_about(client, view, lambda width: render_plan(view, width, already=view.already))


def _split(names: str | None) -> tuple[str, ...] | None:
    """Names separated by commas."""
    return None if names is None else tuple(name.strip() for name in names.split(",") if name.strip())
