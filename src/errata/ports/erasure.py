"""Ports for erased data subjects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from errata.model.manifest import TargetPin


class Suppressions(Protocol):
    """Checks tables for rows of erased data subjects, which must not become visible again.

    The list of subjects is maintained elsewhere (:class:`ErasedSubjects`).
    """

    def watermark(self, table: str) -> str:
        """Version of the list that applies to this table; changes whenever the list grows, empty when none applies."""

    def held(self, table: str, target: TargetPin, snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """The partitions, of those given for each snapshot, that hold rows of a subject on this table's list.

        The snapshots are read from ``target``: the table itself, or the table that holds its candidates.
        """


class ErasedSubjects(Protocol):
    """The list itself: keyed hashes of the subjects' ids. Any key other than the one it was created with is refused."""

    table: str

    def watermark(self) -> str:
        """Version of the list; empty while the list is empty."""

    def hasher(self) -> Callable[[str], str]:
        """The function that turns an id into its hash on the list."""

    def add(self, subjects: Collection[str]) -> int:
        """Add these ids, creating the list if needed; returns how many were new."""
