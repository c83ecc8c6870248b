"""Commands that compute: run, pause, resume, cancel, retry, submit, late."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.compute.control import cancel, pause, resume, retry
from errata.cli.commands.compute.late import late
from errata.cli.commands.compute.run import run
from errata.cli.commands.compute.submit import submit

PANEL = "Compute"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "run", PANEL)(run)
    command(app, "pause", PANEL)(pause)
    command(app, "resume", PANEL)(resume)
    command(app, "cancel", PANEL)(cancel)
    command(app, "retry", PANEL)(retry)
    command(app, "submit", PANEL)(submit)
    command(app, "late", PANEL)(late)
