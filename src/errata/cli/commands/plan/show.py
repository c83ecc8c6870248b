"""`errata show`."""

from __future__ import annotations

from typing import Annotated

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.cli.commands.campaigns import find_campaign
from errata.cli.commands.campaigns import show as show_campaign
from errata.cli.render.plan import render_plan
from errata.text.escape import escape_json


def show(
    session: Session,
    run: Run,
    manifest: Annotated[bool, typer.Option("--manifest", help="Print the exact bytes that are approved.")] = False,
) -> None:
    """Show the plan of a run or a campaign.

    Example: errata show bf-20260214-daily-revenue-7f3a21c0 --manifest | sha256sum
    """
    with session.client() as client:
        if campaign := find_campaign(client, run):
            if manifest:
                _write_bytes(session, client.campaign_bytes(campaign))
            else:
                show_campaign(session, client, campaign)
            return
        if manifest:
            _write_bytes(session, client.manifest_bytes(run))
            return
        view = client.show(run)
        session.answer_about(client, view, lambda width: render_plan(view, width))


def _write_bytes(session: Session, content: bytes) -> None:
    out = session.world.out
    out.flush()
    # bytes, and no newline after them: sha256sum of the output is the digest
    buffer = getattr(out, "buffer", None)
    if buffer is None or out.isatty():
        # a terminal would obey control characters in the bytes
        out.write(escape_json(content.decode()))
    else:
        buffer.write(content)
        buffer.flush()
