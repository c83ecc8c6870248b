"""Commands that compute: run, pause, resume, cancel, retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.render.gate import validation_lines
from errata.cli.render.layout import flow
from errata.cli.render.publish import publish_lines
from errata.cli.render.run import is_staged, run_facts, run_lines
from errata.errors import Rebased
from errata.views import RunView

if TYPE_CHECKING:
    from errata.client import Client


def run(
    session: Session,
    run: Run,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", min=1, help="Chunks at the same time.")] = 2,
    max_chunks: Annotated[
        int | None, typer.Option("--max-chunks", metavar="N", min=1, help="Stop after so many chunks.")
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Once all is staged, validate in the same process; its answer counts.")
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="And publish, where the product does so by itself when the gate is clean.")
    ] = False,
) -> None:
    """Join a run as a worker until nothing is left.

    Safe to start again, anywhere, any number of times: what is done stays done. With --validate a product that has
    publish.manual false is published too, if whoever runs it may publish and the gate found nothing.

    Example: errata run bf-20260214-daily-revenue-7f3a21c0 --parallel 4
    """
    with session.client() as client:
        if publish:
            client.require_unattended(run, as_=session.person)
        while True:
            view = client.run(run, parallel=parallel, max_chunks=max_chunks, as_=session.person)
            if not (validate or publish) or not is_staged(view):
                break
            try:
                _go_on(session, client, view, publish=publish)
                return
            except Rebased as live_won:
                # as often as one run allows; then it is a conflict like any other
                session.narrate(live_won.message)
    session.answer(view, lambda width: run_lines(view, width))


def _go_on(session: Session, client: Client, view: RunView, *, publish: bool) -> None:
    """The gate, and the publication where no person has to look."""
    for line in flow(run_facts(view), session.width):
        session.narrate(line)
    with session.busy(f"validating {view.run_id}"):
        verdict = client.validate(view.run_id, as_=session.person)
    if not publish and not client.publishes_itself(view.run_id, as_=session.person):
        session.answer(verdict, lambda width: validation_lines(verdict, width))
        return
    session.narrate(validation_lines(verdict, session.width)[0])
    with session.busy(f"publishing {view.run_id}"):
        done = client.publish(view.run_id, by_itself=True, as_=session.person)
    session.answer(done, lambda width: publish_lines(done, width))
