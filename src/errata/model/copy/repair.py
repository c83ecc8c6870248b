"""A planned repair of a copy: what it holds now, and what takes its place; part of a sealed plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.model.copy.checksum import Checksum
from errata.model.copy.marker import Content, Delivered, Marker
from errata.model.copy.receipt import describe_content, read_checksum


@dataclass(frozen=True, slots=True)
class CopyRepair:
    """Partitions of one copy that are replaced; ``contents`` is the digest of what is replaced and by what."""

    copy: str
    partitions: tuple[str, ...]
    shape: str  # of the copy: checksums of another one cannot be compared
    copy_rows: int  # that it holds now
    lake_rows: int  # that take their place
    contents: str


@dataclass(frozen=True, slots=True)
class RepairedPartition:
    """One partition: what it has to hold before, what it holds afterwards, and from where."""

    found: Checksum
    accepted: Content
    snapshot_id: str  # of the lake, at which the rows are read
    publication: str  # that was accepted last
    marker: Marker | None  # of the delivery before; None: there was none

    def to_dict(self) -> dict[str, Any]:
        """As it is sealed."""
        return {
            "found": describe_content(Content(self.accepted.sequence, self.found)),
            "accepted": describe_content(self.accepted),
            "snapshot_id": self.snapshot_id,
            "publication": self.publication,
            "marker": [self.marker.publication, self.marker.attempt] if self.marker else None,
        }


def read_repair(sealed: Mapping[str, Any]) -> dict[str, RepairedPartition]:
    """Partitions of a repair from its sealed part."""
    return {
        name: RepairedPartition(
            _read_content(one["found"]).checksum,
            _read_content(one["accepted"]),
            one["snapshot_id"],
            one["publication"],
            Marker(*one["marker"]) if one["marker"] else None,
        )
        for name, one in sealed.items()
    }


def find_moved(sealed: Mapping[str, RepairedPartition], accepted: Mapping[str, int]) -> tuple[str, ...]:
    """Partitions that were published or rolled back after the plan: it says something else about them than the lake."""
    return tuple(name for name, one in sorted(sealed.items()) if accepted.get(name) != one.accepted.sequence)


def find_delivered_since(
    sealed: Mapping[str, RepairedPartition], delivered: Mapping[str, Delivered]
) -> tuple[str, ...]:
    """Partitions that got a delivery or a baseline after the plan."""
    return tuple(
        name
        for name, one in sorted(sealed.items())
        if (delivered[name].marker if name in delivered else None) != one.marker
    )


def _read_content(told: Mapping[str, Any]) -> Content:
    return Content(told["sequence"], read_checksum(told))
