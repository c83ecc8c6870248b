"""A reader that does as it is told: it asks, reads what the answer names, and checks that the promise was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Answer", "CarefulReader", "find_answers"]

READABLE = ("ready", "announced")


class Answer(NamedTuple):
    """What a reader is told about a partition; without a row it was never held."""

    state: str = "ready"
    snapshot_id: str | None = None
    run_id: str | None = None
    since: str | None = None


@dataclass
class CarefulReader:
    """Asks about some days and reads them; raises as soon as it reads something else than it was promised.

    A promise is an answer as a whole. As long as it stands, every read must give the same content, and every day is
    wholly old or wholly new. Where no snapshot is named it reads main, and asks again: another answer means that what
    it read does not count.
    """

    ask: Callable[[], Mapping[str, Answer]]
    read: Callable[[str | None], Sequence[Any]]  # rows of a snapshot, or of main; the first column is the day
    contents: Mapping[str, Mapping[str, Sequence[Any]]]  # "old" and "new" → day → its rows
    promises: dict[tuple[tuple[str, Answer], ...], dict[str, str]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)  # day → what the last read that counts found
    reads: int = 0
    waits: int = 0
    doubts: int = 0

    def look(self) -> str:
        """Ask, and read if that is allowed; returns what was done."""
        told = dict(self.ask())
        found = self._judge(told)
        if any(one.state not in READABLE for one in told.values()):
            self._check_before(told, found)
            self.waits += 1
            return "waited"
        if any(one.snapshot_id is None for one in told.values()) and dict(self.ask()) != told:
            self.doubts += 1
            return "in doubt"
        known = self.promises.setdefault(tuple(sorted(told.items())), found)
        assert known == found, f"promised {told}: was {known}, is now {found}"
        self.last, self.reads = found, self.reads + 1
        return "read"

    def _judge(self, told: Mapping[str, Answer]) -> dict[str, str]:
        """Old or new, for each day, at the snapshot that is named for it."""
        found = {}
        for snapshot in sorted({one.snapshot_id or "" for one in told.values()}):
            days = [day for day, one in told.items() if (one.snapshot_id or "") == snapshot]
            rows = self.read(snapshot or None)
            for day in days:
                mine = [row for row in rows if row[0] == day]
                names = [name for name, content in self.contents.items() if list(content[day]) == mine]
                assert names, f"{day} at snapshot {snapshot or 'main'} is neither old nor new: {mine}"
                found[day] = names[0]
        return found

    def _check_before(self, told: Mapping[str, Answer], found: Mapping[str, str]) -> None:
        """Who cannot wait reads the snapshot that is named: what was there before."""
        for day, one in told.items():
            if one.state in ("held", "publishing") and one.snapshot_id and day in self.last:
                assert found[day] == self.last[day], f"{one} of {day}: was {self.last[day]}, is {found[day]}"


def find_answers(rows: Iterable[Any], table: str, days: Sequence[str]) -> dict[str, Answer]:
    """What the rows of the ready table say about these days, as a left join finds it."""
    found = dict.fromkeys(days, Answer())
    for row in rows:
        if row.table_name == table:
            mine = Answer(row.state, row.snapshot_id, row.run_id, str(row.since))
            found |= {day: mine for day in days if row.first_partition <= day <= row.last_partition}
    return found
