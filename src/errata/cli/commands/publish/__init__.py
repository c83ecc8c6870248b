"""Commands from the gate to main and back: validate, diff, report, release, publish, rollback."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.publish.diff import diff
from errata.cli.commands.publish.publish import publish
from errata.cli.commands.publish.release import release
from errata.cli.commands.publish.report import report
from errata.cli.commands.publish.rollback import rollback
from errata.cli.commands.publish.validate import validate

PANEL = "Validate and publish"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "validate", PANEL)(validate)
    command(app, "diff", PANEL)(diff)
    command(app, "report", PANEL)(report)
    command(app, "release", PANEL)(release)
    command(app, "publish", PANEL)(publish)
    command(app, "rollback", PANEL)(rollback)
