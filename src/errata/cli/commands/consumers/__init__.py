"""Commands about consumers: ready, ack, consumers, deliver, copies, outbox."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from errata.cli.app.register import command
from errata.cli.commands.consumers.acknowledge import acknowledge
from errata.cli.commands.consumers.check import consumers_check, consumers_confirm
from errata.cli.commands.consumers.copies import copies_check
from errata.cli.commands.consumers.deliver import deliver
from errata.cli.commands.consumers.outbox import outbox_list, outbox_retry, outbox_waive
from errata.cli.commands.consumers.ready import ready

PANEL = "Consumers"


class _ListByDefault(TyperGroup):
    """A group whose command ``list`` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        asks_for_help = bool(args) and args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if asks_for_help or {*args[:1]} & {*self.commands} else ["list", *args])


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "ready", PANEL)(ready)
    command(app, "ack", PANEL)(acknowledge)
    consumers = typer.Typer(help="Check consumers, and confirm what was done to them.", rich_markup_mode=None)
    command(consumers, "check")(consumers_check)
    command(consumers, "confirm")(consumers_confirm)
    app.add_typer(consumers, name="consumers", rich_help_panel=PANEL)
    command(app, "deliver", PANEL)(deliver)
    copies = typer.Typer(help="Compare copies in warehouses with the lake.", rich_markup_mode=None)
    command(copies, "check")(copies_check)
    app.add_typer(copies, name="copies", rich_help_panel=PANEL)
    outbox = typer.Typer(help="Show what is owed to consumers.", rich_markup_mode=None, cls=_ListByDefault)
    command(outbox, "list")(outbox_list)
    command(outbox, "retry")(outbox_retry)
    command(outbox, "waive")(outbox_waive)
    app.add_typer(outbox, name="outbox", rich_help_panel=PANEL)
