"""Commands that judge and release: validate, diff, release, publish, rollback."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from errata.cli.command import command
from errata.cli.options import BreakGlass, Partitions, Run, pairs
from errata.cli.render_dark import dark_lines
from errata.cli.render_decisions import release_lines
from errata.cli.render_diff import diff_data, diff_lines
from errata.cli.render_gate import validation_lines
from errata.cli.render_release import preview_lines, publish_lines, rollback_lines
from errata.cli.reviewing import report
from errata.cli.session import Session
from errata.cli.steps import after_review
from errata.cli.working import DECLINED
from errata.errors import UsageError

__all__ = ["register"]

PANEL = "Validate and publish"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "validate", PANEL)(validate)
    command(app, "diff", PANEL)(diff)
    command(app, "report", PANEL)(report)
    command(app, "release", PANEL)(release)
    command(app, "publish", PANEL)(publish)
    command(app, "rollback", PANEL)(rollback)


def validate(
    session: Session,
    run: Run,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="CHECK=WHY", help="Take responsibility for a warning; repeatable."),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option("--thresholds", metavar="WHY", help="Judge by the product file's thresholds of now, and say why."),
    ] = None,
) -> None:
    """Assemble the candidate, measure it, judge it. Exit code 4 when it is rejected.

    Thresholds may change after the scan; nothing is measured again and the change is kept with who and why.

    Example: errata validate bf-20260214-daily-revenue-7f3a21c0 --accept empty="no trading on 2026-01-01"
    """
    accepted = pairs("--accept", accept)
    with session.client() as client, session.busy(f"validating {run}"):
        view = client.validate(run, accept=accepted, thresholds=thresholds, as_=session.person)
    session.answer(view, lambda width: validation_lines(view, width))


def diff(
    session: Session,
    run: Run,
    partitions: Partitions = None,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="So many differing rows.")] = 10,
) -> None:
    """Compare the candidate with the accepted output.

    Schema, rows added, removed and changed, by column, by partition, and samples old → new.

    Example: errata diff bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-17 --sample 20
    """
    with session.client() as client:
        with session.busy(f"comparing {run}"):
            view = client.diff(run, partitions=partitions, sample=sample)
        upcoming = () if session.json else after_review(client.status(run))
    if session.json:
        session.write_json(diff_data(view))
    else:
        session.page(diff_lines(view, session.width, upcoming))


def release(
    session: Session,
    run: Run,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="R", help="The release digest; without it, it is shown.")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Kept with the decision.")] = "",
) -> None:
    """Release a validated candidate; a service may then publish it.

    A person's decision over candidate, verdict and accepted warnings. Without --digest it shows what would be signed,
    and refuses with the command to copy: exit code 3. Another candidate, verdict or acceptance makes a release void.

    Example: errata release bf-20260214-daily-revenue-7f3a21c0 --digest 5c1e0b77…
    """
    with session.client() as client:
        view = client.release(run, digest=digest, note=note, as_=session.person)
    session.answer(view, lambda width: release_lines(view, width))


def publish(
    session: Session,
    run: Run,
    partitions: Partitions = None,
    break_glass: BreakGlass = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Products with publish.groups: go on through all groups, holds included.")
    ] = False,
    early: Annotated[
        str | None, typer.Option("--early", metavar="WHY", help="Do not wait for the hold before the next group.")
    ] = None,
    dark: Annotated[
        bool, typer.Option("--dark", help="Do not publish: make the candidate readable by name, and print how.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="With --dark: under this name.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="With --dark: also a view of old and new side by side.")
    ] = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="With --dark: also a candidate that did not pass, named as such.")
    ] = False,
) -> int:
    """Publish the validated candidate in one commit.

    Or its next group, where the product has publish.groups. Every precondition is checked again. Asks first on a
    terminal; readers see all of it or nothing. A person who publishes releases by that; a service account needs
    `errata release` before. --break-glass stands for the second person and the quorum, never for the gate, the digests
    or a conflict. --dark touches nothing that readers see.

    Example: errata publish bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-01..2026-02-12
    """
    _require_fitting(
        dark=dark, of_dark=(name, compare or None, rejected or None),
        of_publish=(partitions, break_glass, wait or None, early),
    )  # fmt: skip
    digest = None
    with session.client() as client:
        if dark:
            with session.busy(f"naming the candidate of {run}"):
                shown = client.dark(run, name=name, compare=compare, rejected=rejected, as_=session.person)
            session.answer(shown, lambda width: dark_lines(shown, width))
            return 0
        if session.asks:
            plan = client.show(run)
            told = preview_lines("publish", plan, client.status(run), session.width, partitions=partitions, wait=wait)
            if not session.confirm(told, f"publish {run}?"):
                return DECLINED
            digest = plan.release_digest  # a yes is to what was shown
        # a hold has a bar of its own
        with nullcontext() if wait else session.busy(f"publishing {run}"):
            view = client.publish(
                run, partitions=partitions, digest=digest, break_glass=break_glass, wait=wait, early=early,
                as_=session.person,
            )  # fmt: skip
    session.answer(view, lambda width: publish_lines(view, width))
    return 0


def _require_fitting(*, dark: bool, of_dark: tuple[object, ...], of_publish: tuple[object, ...]) -> None:
    if dark and any(given is not None for given in of_publish):
        raise UsageError(
            "--dark with --partitions, --wait, --early or --break-glass was refused; expected the whole candidate: "
            "nothing is published"
        )
    if not dark and any(given is not None for given in of_dark):
        raise UsageError("--name, --compare or --rejected was refused; expected them with --dark")


def rollback(
    session: Session,
    run: Run,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in every record.")],
    partitions: Partitions = None,
) -> int:
    """Restore what partitions held before, as a new commit.

    Asks first on a terminal.

    Example: errata rollback bf-20260214-daily-revenue-7f3a21c0 --partitions 2026-01-03 --reason "bank asks to wait"
    """
    with session.client() as client:
        if session.asks:
            plan, status = client.show(run), client.status(run)
            shown = preview_lines("rollback", plan, status, session.width, partitions=partitions, reason=reason)
            if not session.confirm(shown, f"roll back {run}?"):
                return DECLINED
        with session.busy(f"rolling back {run}"):
            view = client.rollback(run, partitions=partitions, reason=reason, as_=session.person)
    session.answer(view, lambda width: rollback_lines(view, width))
    return 0
