"""Markers: who may replace rows of a copy, and what each of its partitions holds since. Pure.

A marker is a row in the warehouse, next to the copy: one for each attempt of a delivery. It is committed as ``open``
before the swap. The swap and the fence change it with the same statement, to ``done`` or to ``void``, so that exactly
one of them succeeds: after a fence an attempt is either over and its rows are there, or it can never land.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from errata.model.copy.checksum import EMPTY, Checksum


class MarkerState(StrEnum):
    """States of a marker; open leads to one of the others, which are final."""

    OPEN = "open"
    DONE = "done"
    VOID = "void"


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """One attempt of one delivery to a copy."""

    publication: str  # the publication or rollback whose item is paid, or the id of a baseline
    attempt: int  # the fence of the claim: it grows, and is never given twice


@dataclass(frozen=True, slots=True)
class MarkedAttempt:
    """A marker as it is in the warehouse."""

    marker: Marker
    state: MarkerState


@dataclass(frozen=True, slots=True)
class Content:
    """Rows of a partition of the copy, and how far the lake's acceptance had come when they were accepted."""

    sequence: int  # of the newest acceptance of the partition; 0: from before any
    checksum: Checksum


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the last delivery, or the last baseline, left in a partition of the copy."""

    content: Content
    marker: Marker
    shape: str  # of the copy then; a checksum of another shape cannot be compared


def find_lowered(contents: Mapping[str, Content], delivered: Mapping[str, Delivered]) -> tuple[str, ...]:
    """Partitions that would go back to an older acceptance. A swap that would do so must write nothing.

    >>> new, old = Content(4, EMPTY), Delivered(Content(7, EMPTY), Marker("bf-1-p1", 1), "")
    >>> find_lowered({"2026-01-01": new, "2026-01-02": new}, {"2026-01-02": old})
    ('2026-01-02',)
    """
    return tuple(
        name
        for name, content in sorted(contents.items())
        if name in delivered and content.sequence < delivered[name].content.sequence
    )


def list_undelivered(accepted: Mapping[str, int], delivered: Mapping[str, Delivered]) -> tuple[str, ...]:
    """Partitions, with the sequence that is accepted now, that the copy does not hold yet."""
    return tuple(
        name
        for name, sequence in sorted(accepted.items())
        if name not in delivered or delivered[name].content.sequence < sequence
    )


def expect_contents(partitions: tuple[str, ...], delivered: Mapping[str, Delivered]) -> dict[str, Checksum]:
    """What partitions have to hold before they are replaced; one that nobody delivered has to be empty."""
    return {name: delivered[name].content.checksum if name in delivered else EMPTY for name in partitions}
