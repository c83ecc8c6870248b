"""`errata release`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import DECLINED, Run, Wave
from errata.cli.app.session import Session
from errata.cli.app.signing import require_whole_digest, sign_on_terminal
from errata.cli.render.approval import render_release

if TYPE_CHECKING:
    from errata.views import ReleaseView


def release(
    session: Session,
    run: Run,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="R", help="Release digest (default: ask on a terminal).")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Comment, recorded with the decision.")] = "",
    wave: Wave = None,
) -> int:
    """Release a validated candidate for publication.

    After a release a service account may publish the candidate. A person decides on the candidate, its verdict and the
    accepted warnings. On a terminal the command shows them and asks for the first 8 characters of the release digest;
    elsewhere it shows them and needs --digest (exit code 3 without). A release becomes void when candidate, verdict or
    accepted warnings change.

    Example: errata release bf-20260214-daily-revenue-7f3a21c0
    """
    require_whole_digest(session, digest, f"release {run}")
    with session.client() as client:

        def decide(signed: str | None) -> ReleaseView:
            return client.release(run, digest=signed, note=note, wave=wave, as_=session.person)

        if digest is None and session.asks:
            view = sign_on_terminal(session, decide, "release", "release it", _cover_release)
        else:
            view = decide(digest)
        if view is None:
            return DECLINED
        session.answer_about(client, view, lambda width: render_release(view, width))
    return 0


def _cover_release(view: ReleaseView, width: int) -> tuple[list[str], str]:
    return render_release(view, width), view.release_digest
