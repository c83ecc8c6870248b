"""The error for pinned source files that are not as planned: its first line is complete, more files follow it."""

from __future__ import annotations

from collections.abc import Sequence

from errata.errors import SourceChanged
from errata.model.kafka.topic_range import OffsetRange, describe_ranges
from errata.model.manifest import InputPin
from errata.ports.compute import ChunkWork

_SHOWN = 20


def build_source_changed(work: ChunkWork, count: int, problems: Sequence[str]) -> SourceChanged:
    """What to raise when these of ``count`` pinned files are missing or changed; one line per file."""
    first, *others = problems[:_SHOWN]
    told = "is not as planned" if len(problems) == 1 else "are not as planned, such as this one"
    return SourceChanged(
        f"{work.where}: {len(problems)} of {count} source files {told}: "
        + "\n".join((first, *(f"  {problem}" for problem in others))),
        state=work.unstaged,
        hint=_advise(work),
        files=list(problems),
    )


def build_topic_changed(
    work: ChunkWork, pin: InputPin, ranges: Sequence[OffsetRange], problems: Sequence[str]
) -> SourceChanged:
    """What to raise when sealed offsets of a topic cannot be read any more."""
    again = "" if work.is_trial else f" with --supersede {work.run_id}"
    return SourceChanged(
        f"{work.where}: {pin.location} is not as planned: "
        + "\n".join((problems[0], *(f"  {problem}" for problem in problems[1:_SHOWN]))),
        state=f"{work.unstaged}; planned offsets: {describe_ranges(ranges)}",
        hint=f"plan again{again}, without the partitions whose records are gone",
        input=pin.name,
    )


def _advise(work: ChunkWork) -> str:
    if work.is_trial:
        return "a file changed while the trial began"
    return (
        f"put the files back as they were, with their modification time, and errata retry {work.run_id}, "
        f"or plan again with --supersede {work.run_id}"
    )
