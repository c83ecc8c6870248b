"""Writes by others after a run was planned. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from errata.canonical import LEFT_OUT
from errata.model.partition import WHOLE, Grain, format_ranges
from errata.text.numbers import format_moment, plural

_SHOWN = 6
"""Maximum number of partition ranges in a sentence."""


@dataclass(frozen=True, slots=True)
class LiveWriteView:
    """A commit by another job into the partitions of a run, after it was planned."""

    snapshot_id: str
    at: str  # when it was committed
    application: str  # empty: history does not show the writer, and only the content shows whether rows changed
    operation: str
    partitions: tuple[str, ...]
    seen_at: str = ""
    seen_by: str = ""  # approve | status | validate

    def text(self, grain: str) -> str:
        """One sentence for people."""
        days = format_ranges(Grain(grain), self.partitions, most=_SHOWN)
        if not self.application:
            return f"{days} holds other files than planned (snapshot {self.snapshot_id}): publish compares the content"
        told = f"{self.operation}, snapshot {self.snapshot_id}, {format_moment(self.at)} UTC"
        return f"{days} was written after planning by {self.application} ({told})"


@dataclass(frozen=True, slots=True)
class LateInputView:
    """New data in an input after it was pinned, in partitions that the run reads."""

    input: str
    location: str
    partitions: tuple[str, ...]
    change: str  # identifies the change: a snapshot, or the digest of the differing files
    at: str = ""  # when a table was committed to
    application: str = ""  # the writer; empty for files, and if history does not show it
    operation: str = ""
    new_files: int = 0
    changed_files: int = 0
    missing_files: int = 0
    files: tuple[str, ...] = ()  # some of them by name
    seen_at: str = ""
    seen_by: str = ""  # validate | publish
    grain: str = ""  # of the input's partitions; empty: the run's
    withdrawn: bool = field(default=False, metadata=LEFT_OUT)  # a rollback by Errata undid what the run read
    topic: str = field(default="", metadata=LEFT_OUT)  # the topic, if it is one
    records: int = field(default=0, metadata=LEFT_OUT)  # that came to the range of one of its partitions, at least

    def text(self, grain: str) -> str:
        """One sentence for people."""
        days = "all of it" if WHOLE in self.partitions else self._fold(grain)
        if self.withdrawn:
            return (
                f"input withdrawn: {days} of {self.location} was rolled back after it was pinned "
                f"({self._describe_change()}); the run was computed from it"
            )
        if self.topic:
            came = f"at least {plural(self.records, 'record')} came" if self.records else "other offsets are there now"
            return (
                f"input {self.input} may have changed for {days} after it was pinned: {came} that the run does not "
                f"have; only a run reads which partition a record of {self.topic} belongs to"
            )
        return (
            f"input {self.input} changed for {days} after it was pinned: {self._describe_change()}; the run "
            "does not have it"
        )

    def _fold(self, grain: str) -> str:
        return format_ranges(Grain(self.grain or grain), self.partitions, most=_SHOWN)

    def _describe_change(self) -> str:
        if self.application:
            return f"{self.application} ({self.operation}, snapshot {self.change}, {format_moment(self.at)} UTC)"
        if not self.files:
            return f"other files than at the pinned snapshot; {self.location} no longer has the commits since"
        counts = {"new": self.new_files, "changed": self.changed_files, "missing": self.missing_files}
        told = ", ".join(f"{plural(count, f'{word} file')}" for word, count in counts.items() if count)
        return f"{told}, such as {self.files[0]}"
