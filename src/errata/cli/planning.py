"""Commands before any work: try, plan, show, approve, decline."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from errata.cli.command import command
from errata.cli.options import BreakGlass, Run, pairs
from errata.cli.render_plan import decision_lines, plan_lines
from errata.cli.render_try import try_data, try_lines
from errata.cli.session import Session
from errata.errors import UsageError
from errata.model.visible import visible_json

__all__ = ["register"]

PANEL = "Plan and approve"


class Order(StrEnum):
    """Which partitions come first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SEQUENTIAL = "sequential"


Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in every record.")]
Start = Annotated[str | None, typer.Option("--from", metavar="D", help="First partition.")]
End = Annotated[str | None, typer.Option("--to", metavar="D", help="First partition after the range.")]
Instead = Annotated[
    str | None,
    typer.Option("--partitions", metavar="LIST", help="Instead: 2026-01-03,2026-01-10..2026-01-14 (inclusive)."),
]
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help="Kind of correction; recorded with the run.")]
First = Annotated[
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
Proven = Annotated[
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


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "try", PANEL)(try_)
    command(app, "plan", PANEL)(plan)
    command(app, "show", PANEL)(show)
    command(app, "approve", PANEL)(approve)
    command(app, "decline", PANEL)(decline)


def try_(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="The product whose transform is tried.")],
    partitions: Annotated[str, typer.Argument(metavar="PARTITION", help="A partition, or a list as plan takes it.")],
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="So many differing rows.")] = 10,
) -> None:
    """Compute a partition and show what would change; no run.

    With the code and the inputs of now; the findings of the gate and the difference are shown, nothing is written.

    Example: errata try fin.daily_revenue 2026-01-17
    """
    with session.client() as client, session.busy(f"trying {product}"):
        view = client.try_out(product, partitions, sample=sample, as_=session.person)
    if session.json:
        session.write_json(try_data(view))
    else:
        session.page(try_lines(view, session.width))


def plan(
    session: Session,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="The product to correct.")],
    reason: Reason,
    start: Start = None,
    end: End = None,
    partitions: Instead = None,
    kind: Kind = "restate",
    order: First = None,
    canary: Canary = "0",
    prove_determinism: Proven = 0,
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
    overrides = pairs("--override", override)
    with session.client() as client, session.busy(f"planning {product}"):
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
    session.answer(view, lambda width: plan_lines(view, width, already=view.already))


def show(
    session: Session,
    run: Run,
    manifest: Annotated[bool, typer.Option("--manifest", help="The exact bytes that are approved.")] = False,
) -> None:
    """Show a plan again, from the ledger.

    Example: errata show bf-20260214-daily-revenue-7f3a21c0 --manifest | sha256sum
    """
    with session.client() as client:
        if manifest:
            _write_bytes(session, client.manifest_bytes(run))
            return
        view = client.show(run)
    session.answer(view, lambda width: plan_lines(view, width))


def _write_bytes(session: Session, content: bytes) -> None:
    out = session.world.out
    out.flush()
    # bytes, and no newline after them: sha256sum of the output is the digest
    buffer = getattr(out, "buffer", None)
    if buffer is None or out.isatty():
        # nobody hashes a screen, and a screen would obey what the bytes may hold
        out.write(visible_json(content.decode()))
    else:
        buffer.write(content)
        buffer.flush()


def approve(
    session: Session,
    run: Run,
    digest: Annotated[str, typer.Option("--digest", metavar="SHA", help="The manifest digest you read in the plan.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Kept with the decision.")] = "",
    break_glass: BreakGlass = None,
) -> None:
    """Approve a plan by its digest; the requester cannot.

    Where the project wants more than one approval, the run is approved by the last of them. --break-glass stands for
    all of them; it needs the role break_glass, rings the alarm and is shown wherever the run is.

    Example: errata approve bf-20260214-daily-revenue-7f3a21c0 --digest 9be2c0f1…
    """
    with session.client() as client:
        plan_view = None if session.json else client.show(run)
        bare = digest.strip().removeprefix("sha256:")
        view = client.approve(run, digest=bare, note=note, break_glass=break_glass, as_=session.person)
    session.answer(view, lambda width: decision_lines(view, width, plan=plan_view))


def decline(
    session: Session, run: Run, note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why not.")]
) -> None:
    """Decline a plan; that is final, a new plan is a new run.

    Example: errata decline bf-20260214-daily-revenue-7f3a21c0 --note "books are closed"
    """
    with session.client() as client:
        view = client.decline(run, note=note, as_=session.person)
    session.answer(view, lambda width: decision_lines(view, width))
