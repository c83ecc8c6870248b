"""Whether the rows that a transform emitted for a topic may be kept. Pure."""

from __future__ import annotations

from errata.errors import TransformFailed
from errata.ports.compute import ChunkWork


def require_sound_rows(work: ChunkWork, sink: str, rows: int, keys: int, foreign: int) -> None:
    """Raise ``TransformFailed`` unless every row has a key of its own and a partition of the chunk."""
    if foreign:
        raise TransformFailed(
            f"{work.where}: ctx.emit to {sink!r} was refused; {foreign:,} of {rows:,} rows belong to partitions that "
            "this chunk does not compute",
            state=work.unstaged,
            hint="emit only rows of ctx.partitions; another chunk emits the others",
        )
    if keys != rows:
        key = ", ".join(work.manifest.sinks[sink].key)
        raise TransformFailed(
            f"{work.where}: ctx.emit to {sink!r} was refused; {rows:,} rows have {keys:,} different keys ({key})",
            state=work.unstaged,
            hint=f"consumers drop a key of a run that they have seen; add columns to sinks.{sink}.key, then plan again",
        )
