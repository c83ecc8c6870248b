"""A range of ids of an API that is scanned by id: half-open, like ranges of time. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from errata.errors import UsageError

_NAME = re.compile(r".*_(\d+)_(\d+)\.\w+")


@dataclass(frozen=True, slots=True)
class IdRange:
    """From an id to before another one."""

    start: int
    end: int

    @property
    def text(self) -> str:
        """For people, and for the name of the file."""
        return f"{self.start} to {self.end}"

    def contains(self, value: str) -> bool:
        """Whether an id as an answer has it is in the range."""
        return value.isascii() and value.isdecimal() and self.start <= int(value) < self.end

    def overlaps(self, other: IdRange) -> bool:
        """Whether some id is in both."""
        return self.start < other.end and other.start < self.end


def parse_ids(start: str, end: str) -> IdRange:
    """The range that a person typed; raises ``UsageError`` if it is none."""
    if all(text.isascii() and text.isdecimal() for text in (start, end)) and int(start) < int(end):
        return IdRange(int(start), int(end))
    raise UsageError(
        f"the ids from {start!r} to {end!r} were refused; expected two whole numbers, the end larger and not included",
        state="nothing was changed",
        hint="--from 1 --to 1001 are the first thousand",
    )


def find_ids(name: str) -> IdRange | None:
    """The ids that a recorded file is about, by its name.

    >>> find_ids("orders_1_1001.json")
    IdRange(start=1, end=1001)
    """
    found = _NAME.fullmatch(name)
    return IdRange(int(found[1]), int(found[2])) if found else None
