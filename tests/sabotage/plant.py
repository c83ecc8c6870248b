"""What a planted bug is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plant"]


@dataclass(frozen=True, slots=True)
class Plant:
    """What is changed where, and who must notice."""

    name: str
    file: str  # below src/errata
    find: str
    put: str
    noticed_by: tuple[str, ...]
