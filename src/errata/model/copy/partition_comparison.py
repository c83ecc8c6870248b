"""Whether a partition of a copy holds what the lake has accepted: the rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from errata.model.copy.checksum import EMPTY, Checksum
from errata.model.copy.marker import Delivered


class Comparison(StrEnum):
    """What came of comparing a partition."""

    SAME = "same"
    CHANGED = "changed"  # somebody else wrote the copy
    UNDELIVERED = "undelivered"  # what is accepted now has not reached the copy
    MOVED_ON = "moved_on"  # the lake holds other rows than were delivered, not compared
    BASELINE = "baseline"  # only a baseline covers it, and it accepted other rows than the lake has; not compared
    UNKNOWN = "unknown"  # neither a delivery nor a baseline covers it


DIFFERING = frozenset({Comparison.CHANGED, Comparison.UNDELIVERED})


@dataclass(frozen=True, slots=True)
class MeasuredCopy:
    """The lake at one snapshot, and a copy at one moment, with what is on record about both."""

    accepted: Mapping[str, int]  # sequence of the newest acceptance of partitions that have one
    delivered: Mapping[str, Delivered]  # what the last delivery or baseline left, by the record next to the copy
    lake: Mapping[str, Checksum]
    copy: Mapping[str, Checksum]
    shape: str
    tolerance: str | None = None

    def compare(self, name: str) -> Comparison:
        """Compare one partition.

        What the lake holds now is compared only if it is what was delivered. A copy that lacks what is accepted
        differs, however far the lake has moved on: it is owed, has failed or was waived.
        """
        known, lake, copy = self.delivered.get(name), self.lake.get(name, EMPTY), self.copy.get(name, EMPTY)
        sequence = self.accepted.get(name)
        if known is None and sequence is None:
            return Comparison.UNKNOWN
        if known is None or known.content.sequence < (sequence or 0) or known.shape != self.shape:
            return Comparison.SAME if lake.is_like(copy, self.tolerance) else Comparison.UNDELIVERED
        if not lake.is_like(known.content.checksum, self.tolerance):
            return Comparison.MOVED_ON if sequence is not None else Comparison.BASELINE
        return Comparison.SAME if lake.is_like(copy, self.tolerance) else Comparison.CHANGED
