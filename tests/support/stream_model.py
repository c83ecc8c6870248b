"""What the streaming reader of Iceberg 1.11 does, as far as it decides what is read: its rules, without Spark.

``tests/spark/test_streams.py`` shows the same on Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from errata.model.consumer.checkpoint import Offset, parse_checkpoint, parse_offset
from errata.model.consumer.stream import list_blockers
from errata.model.table import MainSnapshot

if TYPE_CHECKING:
    from support.memory_world import MemoryWorld


def write_checkpoint(
    offsets: Sequence[tuple[str, int]],
    *,
    committed: int | None = None,
    first: str | None = None,
    others: Sequence[str] = (),
) -> dict[str, bytes]:
    """The files of a checkpoint whose batches end at these snapshots and positions; all are committed by default."""
    done = len(offsets) - 1 if committed is None else committed
    files = {"metadata": b'{"id":"query"}'}
    for n, (snapshot, position) in enumerate(offsets):
        lines = ("v1", '{"batchWatermarkMs":0}', Offset(snapshot, position).to_json(), *others)
        files[f"offsets/{n}"] = "\n".join(lines).encode()
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(done + 1)}
    if first is not None:
        files["sources/0/offsets/0"] = Offset(first, 0).to_json().encode()
    return files


class StreamModel:
    """A reader of a table: which files of which snapshots it reads, and whether it fails."""

    def __init__(self, line: Sequence[MainSnapshot], *, available_now: bool) -> None:
        self.line, self.available_now = tuple(line), available_now
        self.read: list[tuple[str, int]] = []
        self.failed = False

    def run(self, files: dict[str, bytes]) -> None:
        """Run until there is nothing more, or until it fails; the checkpoint moves on."""
        if self.available_now and self._find_end(parse_offset(files["sources/0/offsets/0"].decode())) is None:
            self.failed = True
            return  # it plans from the first offset on before it does anything
        while self._run_batch(files):
            pass

    def _run_batch(self, files: dict[str, bytes]) -> bool:
        batches = parse_checkpoint("x", files).batches
        last = batches[-1]
        if not last.is_committed:
            start = parse_offset(batches[-2].sources[0]) if len(batches) > 1 else Offset(self.line[0].snapshot_id, 0)
            return self._do(files, last.n, start, parse_offset(last.sources[0]))
        start = parse_offset(last.sources[0])
        end = self._find_end(start)
        if end is None or end == start:
            self.failed = end is None
            return False
        files[f"offsets/{last.n + 1}"] = "\n".join([*last.header, end.to_json()]).encode()
        return self._do(files, last.n + 1, start, end)

    def _find_end(self, start: Offset | None) -> Offset | None:
        """The last append ahead; None if it fails on the way."""
        assert start is not None
        at = [one.snapshot_id for one in self.line].index(start.snapshot_id)
        if list_blockers(self.line[at + 1 :]):
            return None
        appends = [one for one in self.line[at + 1 :] if one.operation == "append"]
        here = Offset(start.snapshot_id, max(start.position, self.line[at].added_files))
        return Offset(appends[-1].snapshot_id, appends[-1].added_files) if appends else here

    def _do(self, files: dict[str, bytes], n: int, start: Offset | None, end: Offset | None) -> bool:
        assert start is not None
        assert end is not None
        ids = [one.snapshot_id for one in self.line]
        first, last = ids.index(start.snapshot_id), ids.index(end.snapshot_id)
        between = self.line[first : last + 1]
        if list_blockers(between):
            self.failed = True
            return False
        for one in between:
            low = start.position if one.snapshot_id == start.snapshot_id else 0
            high = end.position if one.snapshot_id == end.snapshot_id else one.added_files
            self.read += [(one.snapshot_id, file) for file in range(low, high)] if one.operation == "append" else []
        files[f"commits/{n}"] = b"v1\n{}"
        return True


@dataclass
class MemoryReader:
    """A reader of a table in memory with a checkpoint on disk; keeps the key of every row that it reads."""

    world: MemoryWorld
    checkpoint: Path
    available_now: bool = False
    rows: list[tuple[str, str]] = field(default_factory=list)

    def begin(self) -> None:
        """Read what is there with a new checkpoint."""
        first = self._line()[0]
        self._save(write_checkpoint([(first.snapshot_id, 0)], first=first.snapshot_id))
        self.run()

    def run(self) -> bool:
        """Read what there is; returns whether it failed."""
        line, files = self._line(), self.files()
        model = StreamModel(line, available_now=self.available_now)
        model.run(files)
        self._save(files)
        for snapshot, n in model.read:
            file = self.world.table.metadata.snapshots[snapshot].added[n]
            schema = self.world.table.metadata.schema
            self.rows += [(str(row["day"]), str(row["account"])) for row in map(schema.read, file.rows)]
        return model.failed

    def files(self) -> dict[str, bytes]:
        """Every file of the checkpoint."""
        return {
            str(one.relative_to(self.checkpoint)): one.read_bytes()
            for one in self.checkpoint.rglob("*")
            if one.is_file()
        }

    def _line(self) -> tuple[MainSnapshot, ...]:
        return self.world.engines.history.main_line("lake.fin.sales")

    def _save(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            (self.checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
            (self.checkpoint / name).write_bytes(content)
