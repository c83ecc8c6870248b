"""Assets of published products, and the ranges of partitions that an event is about. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias

_FORMATS = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_LONGEST_STEP = {
    "hour": timedelta(hours=1), "day": timedelta(days=1), "month": timedelta(days=31), "year": timedelta(days=366),
}  # fmt: skip
"""The longest step from a partition to the next; two steps are always longer."""


def build_asset(product: str) -> Asset:
    """The asset to schedule consumers by; its events say which partitions changed, and at which snapshot."""
    return Asset(name=f"errata {product}", uri=f"errata://{product}")


def build_alias(product: str) -> AssetAlias:
    """What a publishing task declares, because it adds an event for each range."""
    return AssetAlias(name=f"errata {product}")


def list_changes(status: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """What each committed publication (or rollback) of a run has changed, one entry for each range of partitions."""
    return [
        {
            "run_id": status.get("run_id"), "kind": kind, "first": found[0], "last": found[-1],
            "partitions": len(found), "snapshot_id": publication.get("snapshot_id"),
            "publication_id": publication.get("publication_id"),
        }
        for publication in status.get("publications") or ()
        if publication.get("kind") == kind and publication.get("state") == "committed"
        for found in split_ranges(str(status.get("grain")), publication.get("partitions") or ())
    ]  # fmt: skip


def split_ranges(grain: str, partitions: Sequence[str]) -> list[list[str]]:
    """Partitions as ranges without gaps; values without order are a range each.

    >>> split_ranges("day", ["2026-01-02", "2026-01-01", "2026-01-05"])
    [['2026-01-01', '2026-01-02'], ['2026-01-05']]
    """
    ranges: list[list[str]] = []
    for partition, is_next in _mark_next(grain, sorted(partitions)):
        if is_next:
            ranges[-1].append(partition)
        else:
            ranges.append([partition])
    return ranges


def _mark_next(grain: str, partitions: Sequence[str]) -> Iterator[tuple[str, bool]]:
    before: datetime | None = None
    for partition in partitions:
        now = _parse(grain, partition)
        yield partition, bool(before and now and now - before <= _LONGEST_STEP[grain])
        before = now


def _parse(grain: str, partition: str) -> datetime | None:
    try:
        return datetime.strptime(f"{partition}+0000", f"{_FORMATS[grain]}%z")
    except (KeyError, ValueError):
        return None  # a value, or the partition of rows without one
