"""Render files that a rollback restored and that only the guard protects. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.cli.render.layout import wrap
from errata.model.refs import GUARD

if TYPE_CHECKING:
    from errata.views import HazardView


def render_hazard(hazard: HazardView, width: int) -> list[str]:
    """What depends on the guard, and the statement that resolves it, kept on one line for copying."""
    told = (
        f"the files that {hazard.publication_id} brought back are safe from expiry by other tools as long as branch "
        f"{GUARD} of {hazard.table} is there; to end that, rewrite them with Spark SQL:"
    )
    return [*wrap(told, width, "  "), f"    {hazard.rewrite}"]
