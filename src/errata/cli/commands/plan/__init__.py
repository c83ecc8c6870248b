"""Commands before any work: try, plan, show, approve, decline, standing."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.plan.approve import approve, decline
from errata.cli.commands.plan.plan import plan
from errata.cli.commands.plan.show import show
from errata.cli.commands.plan.standing import standing_approve, standing_revoke, standing_show
from errata.cli.commands.plan.try_ import try_

PANEL = "Plan and approve"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "try", PANEL)(try_)
    command(app, "plan", PANEL)(plan)
    command(app, "show", PANEL)(show)
    command(app, "approve", PANEL)(approve)
    command(app, "decline", PANEL)(decline)
    standing = typer.Typer(help="Approve runs of late data in advance, within limits.", rich_markup_mode=None)
    command(standing, "show")(standing_show)
    command(standing, "approve")(standing_approve)
    command(standing, "revoke")(standing_revoke)
    app.add_typer(standing, name="standing", rich_help_panel=PANEL)
