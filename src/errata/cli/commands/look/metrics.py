"""`errata metrics`."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from errata.cli.app.session import Session
from errata.errors import ErrataError, UsageError


def metrics(
    session: Session,
    serve: Annotated[
        str | None, typer.Option("--serve", metavar="HOST:PORT", help="Answer scrapes at /metrics until interrupted.")
    ] = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="FILE", help="Write a file for node_exporter's textfile collector.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="Ended runs that keep their series.")] = 20,
) -> None:
    """Print metrics of runs, deliveries and the audit for Prometheus.

    They come from the ledger, so they are the same from every machine and stay when a worker dies. Active runs have
    series of their own, and so have the last runs that ended.

    Example: errata metrics --serve 127.0.0.1:9464
    """
    if serve is not None and into is not None:
        raise UsageError("--serve with --into was refused; expected one of them")
    with session.client() as client:
        if serve is not None:
            _serve(session, client.serve_metrics(serve, last=runs, on_error=_Complaint(session)))
        elif into is not None:
            view = client.write_metrics(Path(into), last=runs)
            session.answer(view, lambda _: [f"wrote {view.file}"])
        elif session.json:
            session.write_json(client.metrics(last=runs))
        else:
            # as it is: labels are escaped by the format, and a terminal's width must not break lines
            session.world.out.write(client.metrics_text(last=runs))
            session.world.out.flush()


def _serve(session: Session, serving: AbstractContextManager[str]) -> None:
    with serving as at:
        session.tell(f"metrics at http://{at}/metrics; Ctrl-C ends")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            session.tell("ended")


class _Complaint:
    """Says why the ledger cannot be read, once until another problem comes."""

    def __init__(self, session: Session) -> None:
        self._session, self._last = session, ""

    def __call__(self, error: ErrataError) -> None:
        if error.message != self._last:
            self._last = error.message
            self._session.narrate(f"WARNING: the ledger cannot be read: {self._session.redact(error.message)}")
