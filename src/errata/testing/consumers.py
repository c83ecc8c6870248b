"""What consumers show and look at, in memory: a cache, answers that a test sets, watermarks, ready tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import Refresh, Verify, WatermarkState
from errata.model.consumer.partition_text import fill_redis_key
from errata.model.consumer.readiness import ReadyRow
from errata.model.consumer.redis_keys import compile_pattern
from errata.model.consumer.watermark import WatermarkType
from errata.ports.consumers import ConsumerSystems, Watermark, WatermarkMove, Watermarks
from errata.ports.ready import ReadyTables

_AT = "2026-01-01T00:00:00.000+00:00"


@dataclass(frozen=True, slots=True)
class Done:
    """One call: the key, and the partitions that it was for."""

    kind: str  # redis | sql | http | command | rerun
    partitions: tuple[str, ...]
    key: str


@dataclass
class MemoryConsumers:
    """Systems of consumers. ``cache`` is every Redis; ``show`` answers for SQL, HTTP and commands.

    ``react`` runs after each refresh, with the partitions; ``broken`` is the error of systems that do not work.
    """

    cache: dict[str, str] = field(default_factory=dict)
    show: Callable[[str], str | None] = lambda _: None
    react: Callable[[Sequence[str]], None] = lambda _: None
    broken: str = ""
    done: list[Done] = field(default_factory=list)

    def refresh(self, step: Refresh, partitions: Sequence[str], key: str) -> int | None:
        """See the port."""
        if self.broken:
            raise EngineError(self.broken)
        kind = "redis" if step.redis else "sql" if step.sql else "http" if step.http else "command"
        self.done.append(Done(kind, tuple(partitions), key))
        wanted = compile_pattern(step.delete, partitions) if step.delete is not None else None
        gone = [name for name in self.cache if wanted and wanted.fullmatch(name)]
        for name in gone:
            del self.cache[name]
        self.react(partitions)
        return None if wanted is None else len(gone)

    def read_shown(self, verify: Verify, partitions: Sequence[str], key: str) -> dict[str, str | None]:
        """See the port."""
        del key
        if self.broken:
            raise EngineError(self.broken)
        if verify.get is not None:
            return {name: self.cache.get(fill_redis_key(verify.get, name)) for name in partitions}
        return {name: self.show(name) for name in partitions}

    def rerun(self, command: Sequence[str], partitions: Sequence[str], key: str, timeout_seconds: float) -> None:
        """See the port."""
        del command, timeout_seconds
        if self.broken:
            raise EngineError(self.broken)
        self.done.append(Done("rerun", tuple(partitions), key))
        self.react(partitions)


@dataclass
class MemoryWatermarks:
    """Watermarks by table and key; ``effects`` has the moves by their key."""

    rows: dict[tuple[str, str], str | None] = field(default_factory=dict)
    type: WatermarkType = WatermarkType.DATE
    effects: dict[str, WatermarkMove] = field(default_factory=dict)

    def put(self, state: WatermarkState, value: str | None) -> None:
        """Set a watermark, as its job does."""
        self.rows[_name(state)] = value

    def read(self, state: WatermarkState) -> Watermark:
        """See the port."""
        if _name(state) not in self.rows:
            raise UsageError(f"the watermark in {state.table} was not found; expected one row, found none")
        return Watermark(self.rows[_name(state)], self.type)

    def find_move(self, state: WatermarkState, key: str) -> WatermarkMove | None:
        """See the port."""
        del state
        return self.effects.get(key)

    def move(self, state: WatermarkState, key: str, expected: str | None, new: str | None) -> WatermarkMove | None:
        """See the port."""
        if key not in self.effects:
            if self.read(state).value != expected:
                return None
            self.rows[_name(state)] = new
            self.effects[key] = WatermarkMove(expected, new, _AT)
        return self.effects[key]


def _name(state: WatermarkState) -> tuple[str, str]:
    return state.table, repr(sorted(state.key.items()))


@dataclass
class MemoryReadyTables:
    """Ready tables by name; ``broken`` is the error of a catalog that does not answer."""

    tables: dict[str, tuple[ReadyRow, ...]] = field(default_factory=dict)
    commits: list[tuple[ReadyRow, ...]] = field(default_factory=list)  # all rows after each commit
    broken: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def replace(self, table: str, names: Sequence[str], read: Callable[[], Sequence[ReadyRow]]) -> bool:
        """See the port."""
        while True:
            if self.broken:
                raise EngineError(self.broken, table=table)
            version, before = len(self.commits), self.tables.get(table, ())
            kept = tuple(row for row in before if row.table_name not in names)
            rows = _sort((*kept, *read()))
            if rows == before:
                return False
            with self._lock:
                if len(self.commits) == version:
                    self.tables[table] = rows
                    self.commits.append(rows)
                    return True

    def rows(self, table: str) -> tuple[ReadyRow, ...]:
        """See the port."""
        return self.tables.get(table, ())


def _sort(rows: Sequence[ReadyRow]) -> tuple[ReadyRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.table_name, row.first_partition)))


_systems: type[ConsumerSystems] = MemoryConsumers
_watermarks: type[Watermarks] = MemoryWatermarks
_are_ready_tables: type[ReadyTables] = MemoryReadyTables
