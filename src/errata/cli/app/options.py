"""Arguments and options shared by several commands, and parsing of ``NAME=TEXT``. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Annotated

import typer

from errata.errors import UsageError

DECLINED = 1
"""Exit code when the person answers no."""

Run = Annotated[str, typer.Argument(metavar="RUN", help="Run or campaign: id, or a unique part.")]
Partitions = Annotated[
    str | None,
    typer.Option(
        "--partitions",
        metavar="LIST",
        help="Only these, inclusive: 2026-01-03,2026-01-10..2026-01-14 (default: all).",
    ),
]

Wave = Annotated[
    int | None, typer.Option("--wave", metavar="N", min=1, help="Only this wave of the run (default: what is next).")
]

BreakGlass = Annotated[
    str | None,
    typer.Option("--break-glass", metavar="WHY", help="Decide alone for this reason; triggers the alarm."),
]


def parse_pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """Parse ``NAME=TEXT`` options into a mapping; both sides must be non-empty, and names unique."""
    found: dict[str, str] = {}
    for item in given or ():
        name, equals, text = item.partition("=")
        # rule names are stored in composed form, however the keyboard enters them
        name, text = unicodedata.normalize("NFC", name.strip()), text.strip()
        if not (name and equals and text):
            raise UsageError(f"{option} {item!r} was refused; expected NAME=TEXT", hint=f'{option} name="text"')
        if name in found:
            raise UsageError(f"{option} {name} was given twice; expected once")
        found[name] = text
    return found
