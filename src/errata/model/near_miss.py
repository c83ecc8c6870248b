"""Where a search for files ended when nothing matched: the nearest directory that exists, and what is in it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from errata.text.escape import escape_text

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The pattern that matched nothing, and the last directory on the way to it."""

    pattern: str
    directory: str
    entries: tuple[str, ...]

    def describe(self) -> str:
        """One clause for a message."""
        return f"the nearest directory, {escape_text(self.directory)}, has {describe_entries(self.entries)}"


def describe_entries(names: Sequence[str]) -> str:
    """Names in a directory, cut short.

    >>> describe_entries(()), describe_entries(("a", "b")), describe_entries(("1", "2", "3", "4", "5"))
    ('nothing in it', 'a, b', '1, 2 … 5 (5 entries)')
    """
    shown = [escape_text(name) for name in names]
    if len(shown) > _SHOWN:
        return f"{', '.join(shown[:2])} … {shown[-1]} ({len(shown):,} entries)"
    return ", ".join(shown) or "nothing in it"
