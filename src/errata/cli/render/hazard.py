"""Files that a rollback brought back and that only the guard protects, as text. Pure."""

from __future__ import annotations

from errata.cli.render.layout import wrap
from errata.model.refs import GUARD
from errata.views import HazardView


def render_hazard(hazard: HazardView, width: int) -> list[str]:
    """What depends on the guard, and the statement that ends it, which is not broken: it is there to be copied."""
    told = (
        f"the files that {hazard.publication_id} brought back are safe from expiry by other tools as long as branch "
        f"{GUARD} of {hazard.table} is there; to end that, rewrite them with Spark SQL:"
    )
    return [*wrap(told, width, "  "), f"    {hazard.rewrite}"]
