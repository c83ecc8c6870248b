"""What the doctor can say when there is no project to open. Touches: the jar cache, to read."""

from __future__ import annotations

from dataclasses import dataclass

from errata.errors import ErrataError

__all__ = ["Finding", "jars_finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    hint: str | None = None


def jars_finding() -> Finding:
    """Whether the jars that Spark needs are in the user cache, verified."""
    from errata.jars import default_cache_dir, require

    try:
        paths = require()
    except ErrataError as error:
        return Finding("jars", ok=False, found=error.message, hint=error.hint)
    return Finding("jars", ok=True, found=f"{len(paths)} verified in {default_cache_dir()}")
