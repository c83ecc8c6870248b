"""The demo's last page: what Errata reports next to what the independent reader finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, with the answers of two independent sources."""

    text: str
    errata: str
    independent: str
    holds: bool


def same(text: str, errata: int, independent: int, *, want: int | None = None, unit: str = "") -> Claim:
    """A claim about a number: both sources agree, and on the wanted number if there is one."""
    holds = errata == independent and (want is None or independent == want)
    return Claim(text, f"{errata:,}{unit}", f"{independent:,}{unit}", holds)


def print_claims(claims: Sequence[Claim]) -> bool:
    """Print the table; returns whether every claim holds."""
    table = Table(title="What was shown", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("claim", "Errata says", "independent reader finds"):
        table.add_column(name, overflow="fold")
    table.add_column("")
    for claim in claims:
        verdict = "[green]✓ holds[/green]" if claim.holds else "[red]✗ FAILS[/red]"
        table.add_row(claim.text, claim.errata, claim.independent, verdict)
    Console(width=110, highlight=False).print(table)
    return all(claim.holds for claim in claims)
