"""Ports for erased data subjects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from errata.model.manifest import Manifest, TargetPin
from errata.model.product.erasure import ErasurePin
from errata.model.product.erasure_place import HeldState


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

    def used(self, manifest: Manifest, since: str | None) -> tuple[str, ...]:
        """The partitions whose inputs hold rows of a subject that came onto the list after the snapshot ``since``.

        Recorded events count as an input of runs that add missing ones. The newest snapshot that
        counts is the one of ``manifest.erasure``. None, and a snapshot that the list no longer has, mean from the
        beginning.
        """


class SubjectSearch(Protocol):
    """Looks for rows of given subjects in tables. Only reads; ids are in no log and no message."""

    def find_states(self, table: str, columns: Sequence[str], ids: Collection[str]) -> tuple[HeldState, ...]:
        """Every branch and tag of the table that shows a row of these subjects, and the newest old snapshot that does.

        An id counts as text, whatever type the column has. A table that does not exist holds nobody. Where it cannot be
        decided whether a row is deleted, it counts as held.
        """

    def find_in_json(self, table: str, columns: Sequence[str], ids: Collection[str]) -> bool:
        """Whether a value in JSON text of these columns is one of the ids, or a line of text contains one."""


class ErasedSubjects(Protocol):
    """The list itself: keyed hashes of the subjects' ids. Any key other than the one it was created with is refused."""

    table: str

    def watermark(self) -> str:
        """Version of the list; empty while the list is empty."""

    def read_pin(self, columns: Sequence[str]) -> ErasurePin:
        """The list as it is now, for a plan or an attempt; ``columns`` are those of the target. Needs no key."""

    def read_listed(self) -> frozenset[str]:
        """The hashes on the list."""

    def hasher(self) -> Callable[[str], str]:
        """The function that turns an id into its hash on the list."""

    def add(self, subjects: Collection[str]) -> int:
        """Add these ids, creating the list if needed; returns how many were new."""
