"""The receipt of a delivery: what each partition of a copy got, measured on every side, as it is put on record. Pure.

A receipt is the result of the paid item. The list of partitions is a part of its own, because there may be many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.model.copy.checksum import EMPTY, Checksum, DoubleSum
from errata.model.copy.delivery import Swap
from errata.model.copy.marker import Content, Delivered

BASELINE = "copy.baseline"
"""The audit action of a person who accepts what a copy holds."""
STAGED, COPY, READ_BACK, BEFORE = "staged", "copy", "read_back", "before"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What was accepted for a partition when it was delivered."""

    publication: str
    snapshot_id: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Checksums of the partitions at each step; ``copy`` is empty if the answer to the commit was lost."""

    staged: Mapping[str, Checksum]
    copy: Mapping[str, Checksum]
    read_back: Mapping[str, Checksum]  # also of partitions that were there already


def describe_contents(contents: Mapping[str, Content]) -> dict[str, Any]:
    """Contents by partition, as they are put on record."""
    return {name: describe_content(one) for name, one in sorted(contents.items())}


def describe_content(content: Content) -> dict[str, Any]:
    """A content as it is put on record."""
    return {"sequence": content.sequence, **describe_checksum(content.checksum)}


def describe_checksum(checksum: Checksum) -> dict[str, Any]:
    """A checksum as it is put on record: sums of hashes as text, because they are longer than numbers of JSON."""
    told: dict[str, Any] = {"rows": checksum.rows, "upper": str(checksum.upper), "lower": str(checksum.lower)}
    if checksum.doubles:
        told["doubles"] = [[repr(one.total), one.values] for one in checksum.doubles]
    return told


def _describe_step(checksum: Checksum) -> dict[str, Any]:
    """A checksum as it was taken in the warehouse: also its own hash, and whether only this hash was compared."""
    told = describe_checksum(checksum)
    if checksum.own_hash:
        told["own_hash"] = checksum.own_hash
    return told | ({"by": "own_hash"} if checksum.is_recognised else {})


def read_checksum(told: Mapping[str, Any]) -> Checksum:
    """The checksum that was put on record.

    >>> read_checksum(describe_checksum(Checksum(2, 5, 7, (DoubleSum(0.5, 1),))))
    Checksum(rows=2, upper=5, lower=7, doubles=(DoubleSum(total=0.5, values=1),))
    """
    doubles = tuple(DoubleSum(float(total), values) for total, values in told.get("doubles", ()))
    return Checksum(told["rows"], int(told["upper"]), int(told["lower"]), doubles)


def describe_swapped(
    swap: Swap, accepted: Mapping[str, Acceptance], delivered: Mapping[str, Delivered], measured: Measured
) -> dict[str, Any]:
    """Partitions that were replaced: the lake's checksum, and those of staging, of the copy and of a later look."""
    told = {}
    seen = {STAGED: measured.staged, READ_BACK: measured.read_back} | ({COPY: measured.copy} if measured.copy else {})
    for name, content in sorted(swap.contents.items()):
        known = delivered.get(name)
        told[name] = {
            **describe_content(content),
            **_describe_acceptance(accepted[name]),
            **{step: _describe_step(found.get(name, EMPTY)) for step, found in seen.items()},
            BEFORE: {
                "rows": swap.expected[name].rows,
                "publication": known.marker.publication if known else None,
            },
        }
    return told


def describe_present(
    delivered: Mapping[str, Delivered], accepted: Mapping[str, Acceptance], read_back: Mapping[str, Checksum]
) -> dict[str, Any]:
    """Partitions that an earlier attempt or item had delivered already, by the record of the warehouse."""
    return {
        name: {
            **describe_content(one.content),
            **_describe_acceptance(accepted[name]),
            READ_BACK: _describe_step(read_back.get(name, EMPTY)),
            "delivered_by": [one.marker.publication, one.marker.attempt],
        }
        for name, one in sorted(delivered.items())
    }


def _describe_acceptance(accepted: Acceptance) -> dict[str, Any]:
    return {"publication": accepted.publication, "snapshot_id": accepted.snapshot_id}


def is_same_everywhere(told: Mapping[str, Any], tolerance: str | None = None) -> bool:
    """Whether a partition of a receipt had the lake's rows wherever it was measured."""
    lake = read_checksum(told)
    steps = (told[step] for step in (STAGED, COPY, READ_BACK) if step in told)
    return all(read_checksum(one).is_like(lake, tolerance) for one in steps)
