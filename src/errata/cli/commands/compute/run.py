"""`errata run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.copy_exit import choose_copy_exit
from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import answer, find_campaign, refuse_options
from errata.cli.render.gate import render_validation
from errata.cli.render.layout import flow
from errata.cli.render.publish import render_publish
from errata.cli.render.run import ends_with_verdict, format_run, is_staged, render_run
from errata.errors import ErasureListMoved, Rebased

if TYPE_CHECKING:
    from errata.client import Client
    from errata.views import RunView


def run(
    session: Session,
    run: Run,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", min=1, help="Chunks to compute in parallel.")] = 2,
    max_chunks: Annotated[
        int | None, typer.Option("--max-chunks", metavar="N", min=1, help="Stop after N chunks (default: no limit).")
    ] = None,
    validate: Annotated[bool, typer.Option("--validate", help="Validate once every chunk is staged.")] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Also validate, and publish what may go, wave by wave.")
    ] = False,
) -> int:
    """Work on a run until no chunk is left.

    Safe to start again, on any machine and any number of times: finished chunks are not computed again. --validate
    returns the exit code of the gate. It also publishes a product with publish.manual: false, if the acting person may
    publish and the gate found nothing. A run of kind attest or reconcile always ends with its verdict.

    A campaign is walked in order: every member that may start is computed and validated and, with --publish, published
    if it was released or its gate is clean and the product publishes by itself.

    Example: errata run bf-20260214-daily-revenue-7f3a21c0 --parallel 4
    """
    with session.client() as client:
        if campaign := find_campaign(client, run):
            refuse_options(campaign, max_chunks=max_chunks)
            done = client.run_campaign(campaign, publish=publish, parallel=parallel, as_=session.person)
            return answer(session, done)
        if publish:
            client.require_unattended(run, as_=session.person)
        while True:
            view = client.run(run, parallel=parallel, max_chunks=max_chunks, publish=publish, as_=session.person)
            is_streamed = publish and len(view.waves) > 1
            if not (validate or publish or ends_with_verdict(view)) or not is_staged(view) or is_streamed:
                break
            try:
                return _validate_and_publish(session, client, view, publish=publish)
            except Rebased as live_won:
                # a run has a limit of rebases; beyond it the next one is reported as a conflict
                session.narrate(live_won.message)
        session.answer_about(client, view, lambda width: render_run(view, width))
    return choose_copy_exit(view.copies)


def _validate_and_publish(session: Session, client: Client, view: RunView, *, publish: bool) -> int:
    """Validate, and publish if the product needs no person for it; returns the exit code."""
    # late, because help must not load publishing
    from errata.publishing.erasure import MOST_VERDICTS

    for line in flow(format_run(view), session.width):
        session.narrate(line)
    for looks_left in range(MOST_VERDICTS - 1, -1, -1):
        try:
            return _validate_and_publish_once(session, client, view, publish=publish)
        except ErasureListMoved as moved:
            if not looks_left:
                raise
            session.narrate(f"{moved.message}; this is done now")
    raise AssertionError("the last look returns or raises")


def _validate_and_publish_once(session: Session, client: Client, view: RunView, *, publish: bool) -> int:
    with session.show_spinner(f"validating {view.run_id}"):
        verdict = client.validate(view.run_id, as_=session.person)
    if ends_with_verdict(view) or (not publish and not client.publishes_itself(view.run_id, as_=session.person)):
        session.answer_about(client, verdict, lambda width: render_validation(verdict, width))
        return 0
    session.narrate(render_validation(verdict, session.width)[0])
    with session.show_spinner(f"publishing {view.run_id}"):
        # one wave: there is nothing to wait for but consumers that are held
        done = client.publish(view.run_id, by_itself=True, wait=True, as_=session.person)
    session.answer_about(client, done, lambda width: render_publish(done, width))
    return choose_copy_exit(done.copies)
