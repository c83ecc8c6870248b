"""Ports for erased data subjects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from errata.model.manifest import TargetPin


class Suppressions(Protocol):
    """The subjects whose rows may not become visible again, as someone else keeps them."""

    def watermark(self, table: str) -> str:
        """Where the list for this table stands; another text whenever it grew, empty while there is none."""

    def held(self, table: str, target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Of these partitions of these snapshots, those with rows of someone on the list for this table; ``target`` is
        where they are read, the table itself or where its candidates are."""


class ErasedSubjects(Protocol):
    """The list itself: keyed hashes of the subjects' ids. A key with which it was not made is refused."""

    table: str

    def watermark(self) -> str:
        """Where it stands; empty while nobody is on it."""

    def hasher(self) -> Callable[[str], str]:
        """Gives what stands for an id on the list."""

    def add(self, subjects: Collection[str]) -> int:
        """Put these ids on the list, which is made when there is none; how many were not on it."""
