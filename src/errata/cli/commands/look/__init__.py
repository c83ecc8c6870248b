"""Commands that look and change nothing: status, why, runs, history, runbook, impact, stale, quarantine, metrics."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.look.history import history
from errata.cli.commands.look.impact import impact
from errata.cli.commands.look.metrics import metrics
from errata.cli.commands.look.quarantine import quarantine
from errata.cli.commands.look.runbook import runbook
from errata.cli.commands.look.runs import runs
from errata.cli.commands.look.stale import stale
from errata.cli.commands.look.status import status
from errata.cli.commands.look.why import why

PANEL = "Look"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "status", PANEL)(status)
    command(app, "why", PANEL)(why)
    command(app, "runs", PANEL)(runs)
    command(app, "history", PANEL)(history)
    command(app, "runbook", PANEL)(runbook)
    command(app, "impact", PANEL)(impact)
    command(app, "stale", PANEL)(stale)
    command(app, "quarantine", PANEL)(quarantine)
    command(app, "metrics", PANEL)(metrics)
