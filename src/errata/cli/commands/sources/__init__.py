"""Commands about recordings: import, record, recordings."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.sources.import_ import import_
from errata.cli.commands.sources.record import record
from errata.cli.commands.sources.recordings import recordings

PANEL = "Recordings"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    command(app, "import", PANEL)(import_)
    command(app, "record", PANEL)(record)
    command(app, "recordings", PANEL)(recordings)
