"""What others did after a run was planned, as it was noticed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from errata.model.human import moment
from errata.model.partition import Grain, fold_text

__all__ = ["LiveWriteView"]

_SHOWN = 6
"""Ranges of partitions that a sentence names."""


@dataclass(frozen=True, slots=True)
class LiveWriteView:
    """A commit of someone else into the partitions of a run, after it was planned."""

    snapshot_id: str
    at: str  # when it was committed
    application: str  # empty: the history does not say who wrote, and only the content can tell whether rows changed
    operation: str
    partitions: tuple[str, ...]
    seen_at: str = ""
    seen_by: str = ""  # approve | status | validate

    def text(self, grain: str) -> str:
        """One sentence for people."""
        days = fold_text(Grain(grain), self.partitions, most=_SHOWN)
        if not self.application:
            return f"{days} holds other files than planned (snapshot {self.snapshot_id}): publish compares the content"
        told = f"{self.operation}, snapshot {self.snapshot_id}, {moment(self.at)} UTC"
        return f"{days} was written after planning by {self.application} ({told})"
