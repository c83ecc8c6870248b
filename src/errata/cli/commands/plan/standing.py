"""`errata standing show`, `approve`, `revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import DECLINED, parse_pairs
from errata.cli.app.session import Session
from errata.cli.app.signing import require_whole_digest, sign_on_terminal
from errata.cli.render.late import render_standing, render_standings
from errata.errors import UsageError

if TYPE_CHECKING:
    from errata.views.late import StandingView

SomeProduct = Annotated[str | None, typer.Argument(metavar="[PRODUCT]", help="Product (default: all).")]
OneProduct = Annotated[str, typer.Argument(metavar="PRODUCT", help="Product with the key late.")]


def standing_show(session: Session, product: SomeProduct = None) -> None:
    """Show standing approvals and the runs that used them.

    Example: errata standing show fin.daily_revenue
    """
    with session.client() as client:
        view = client.standing(product)
    session.answer(view, lambda width: render_standings(view, width))


def standing_approve(
    session: Session,
    product: OneProduct,
    change: Annotated[
        list[str],
        typer.Option("--change", metavar="METRIC=LIMIT", help="Largest change of rows or a metric; repeatable."),
    ],
    oldest: Annotated[str, typer.Option("--oldest", metavar="AGE", help="Cover no partition older than this.")] = "30d",
    partitions_per_run: Annotated[
        int, typer.Option("--partitions-per-run", metavar="N", min=1, help="Most partitions in one run.")
    ] = 7,
    runs_per_day: Annotated[
        int, typer.Option("--runs-per-day", metavar="N", min=1, help="Most runs within 24 hours.")
    ] = 4,
    partitions_per_day: Annotated[
        int, typer.Option("--partitions-per-day", metavar="N", min=1, help="Most partitions within 24 hours.")
    ] = 14,
    valid: Annotated[str, typer.Option("--valid", metavar="AGE", help="How long the decision counts.")] = "90d",
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="SHA", help="Digest of the scope (default: ask on a terminal).")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Comment, recorded with the decision.")] = "",
) -> int:
    """Approve in advance what `errata late` runs.

    Covers approval and release of runs with `late: {act: run}`, for the whole product as it is now: code, config,
    checks, inputs by table, mode and dependencies. A run is covered only within these limits, without override and
    outside closed periods, and published only if the gate finds nothing. A finding, a conflict or a rollback suspends
    it until people approve it again.

    Example: errata standing approve fin.daily_revenue --change rows=5% --change "sum(revenue_usd)=10%" --oldest 14d
    """
    if digest is None and not session.asks:
        raise UsageError(
            "standing approve without --digest was refused; expected the digest, because nobody can be asked here",
            state="nothing was changed",
            hint=f"errata standing approve {product} … on a terminal shows what it covers and its digest",
        )
    require_whole_digest(session, digest, f"standing approve {product}")
    changes = parse_pairs("--change", change)
    with session.client() as client:

        def decide(signed: str | None) -> StandingView:
            return client.approve_standing(
                product, digest=signed, changes=changes, oldest=oldest, partitions_per_run=partitions_per_run,
                runs_per_day=runs_per_day, partitions_per_day=partitions_per_day, valid=valid, note=note,
                as_=session.person,
            )  # fmt: skip

        view = (
            decide(digest)
            if digest is not None
            else sign_on_terminal(session, decide, "standing", "approve it", _cover_scope)
        )
    if view is None:
        return DECLINED
    session.answer(view, lambda width: render_standing(view, width))
    return 0


def _cover_scope(view: StandingView, width: int) -> tuple[list[str], str]:
    return render_standing(view, width), view.digest


def standing_revoke(
    session: Session,
    product: OneProduct,
    note: Annotated[
        str, typer.Option("--reason", "--note", metavar="TEXT", help="Reason, recorded with the decision.")
    ],
) -> None:
    """Revoke every standing approval of a product.

    Runs under it that are not published need a person from now on.

    Example: errata standing revoke fin.daily_revenue --reason "books are closed"
    """
    with session.client() as client:
        view = client.revoke_standing(product, note=note, as_=session.person)
    session.answer(view, lambda width: render_standings(view, width))
