"""`errata publish`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from errata.cli.app.copy_exit import choose_copy_exit
from errata.cli.app.options import DECLINED, BreakGlass, Partitions, Run
from errata.cli.app.session import Session
from errata.cli.render.preview import render_preview
from errata.cli.render.publish import render_confirmation, render_publish
from errata.errors import UsageError


def publish(
    session: Session,
    run: Run,
    partitions: Partitions = None,
    break_glass: BreakGlass = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Publish all waves, waiting for the pause between them.")
    ] = False,
    early: Annotated[
        str | None, typer.Option("--early", metavar="WHY", help="Skip the pause before the next wave.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Only make the candidate readable under a name.")] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="With --dark: name to use (default: errata_RUN_dark).")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="With --dark: add a view of old and new rows.")] = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="With --dark: allow a candidate that did not pass.")
    ] = False,
) -> int:
    """Publish the validated candidate in one commit.

    Readers see all of it or nothing. A product with publish.waves publishes its next wave. Every precondition is
    checked again. Asks first on a terminal.

    Publishing counts as your release. A service account needs a release by a person (`errata release`). --break-glass
    replaces the second person and the quorum, but never the gate, the digests or the check for conflicts. --dark
    changes nothing that readers see.

    Example: errata publish bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-01..2026-02-12
    """
    _refuse_mixed_options(
        dark=dark, of_dark=(name, compare or None, rejected or None),
        of_publish=(partitions, break_glass, wait or None, early),
    )  # fmt: skip
    digest = None
    with session.client() as client:
        if dark:
            with session.show_spinner(f"naming the candidate of {run}"):
                shown = client.dark(run, name=name, compare=compare, rejected=rejected, as_=session.person)
            session.answer_about(client, shown, lambda width: render_preview(shown, width))
            return 0
        if session.asks:
            plan = client.show(run)
            told = render_confirmation(
                "publish", plan, client.status(run), session.width, partitions=partitions, wait=wait
            )
            if not session.confirm(told, f"publish {plan.run_id}?"):
                return DECLINED
            digest = plan.release_digest  # a yes is to what was shown
        # a pause has a bar of its own
        with nullcontext() if wait else session.show_spinner(f"publishing {run}"):
            view = client.publish(
                run, partitions=partitions, digest=digest, break_glass=break_glass, wait=wait, early=early,
                as_=session.person,
            )  # fmt: skip
        session.answer_about(client, view, lambda width: render_publish(view, width))
    return choose_copy_exit(view.copies)


def _refuse_mixed_options(*, dark: bool, of_dark: tuple[object, ...], of_publish: tuple[object, ...]) -> None:
    if dark and any(given is not None for given in of_publish):
        raise UsageError(
            "--dark with --partitions, --wait, --early or --break-glass was refused; expected the whole candidate: "
            "nothing is published"
        )
    if not dark and any(given is not None for given in of_dark):
        raise UsageError("--name, --compare or --rejected was refused; expected them with --dark")
