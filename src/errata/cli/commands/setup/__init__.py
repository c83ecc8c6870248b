"""Commands that set a project up: init, adopt, check, doctor, jars."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.setup.adopt import adopt
from errata.cli.commands.setup.check import check
from errata.cli.commands.setup.doctor import doctor
from errata.cli.commands.setup.init import init
from errata.cli.commands.setup.jars import jars_archive, jars_check, jars_fetch

PANEL = "Set up"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "init", PANEL)(init)
    command(app, "adopt", PANEL)(adopt)
    command(app, "check", PANEL)(check)
    command(app, "doctor", PANEL)(doctor)
    jars = typer.Typer(help="Download and verify the pinned jars.", rich_markup_mode=None)
    command(jars, "fetch")(jars_fetch)
    command(jars, "check")(jars_check)
    command(jars, "archive")(jars_archive)
    app.add_typer(jars, name="jars", rich_help_panel=PANEL)
