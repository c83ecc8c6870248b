"""Rows that a transform emits for topics, kept in memory with the attempt that computed them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.engines.emitted_check import require_sound_rows
from errata.errors import NotFound
from errata.model.kafka.outgoing import describe_inputs
from errata.model.partition import name_partition
from errata.model.product.sinks import SEND, require_allowed_sink, require_row_columns
from errata.model.refs import emitted_table
from errata.ports.compute import ROWS_EMITTED, ChunkWork
from errata.ports.outgoing_rows import EmittedRow, EmittedTable
from errata.testing.row_values import to_plain


@dataclass
class MemoryEmitted:
    """Tables of emitted rows by name; each row with the attempt that wrote it."""

    tables: dict[str, list[tuple[str, EmittedRow]]] = field(default_factory=dict)

    def ensure(self, table: str) -> None:
        """See the port."""
        self.tables.setdefault(table, [])

    def write(self, table: str, attempt: str, rows: Sequence[EmittedRow]) -> None:
        """Add the rows of an attempt, once."""
        if not any(known == attempt for known, _ in self.tables[table]):
            self.tables[table] += [(attempt, row) for row in rows]

    def iterate(self, table: str, attempts: Collection[str], sink: str) -> Iterator[Sequence[EmittedRow]]:
        """See the port."""
        if table not in self.tables:
            raise NotFound(f"there is no table {table}")
        if found := [row for attempt, row in self.tables[table] if attempt in attempts and row.sink == sink]:
            yield found

    def exists(self, table: str) -> bool:
        """See the port."""
        return table in self.tables

    def drop(self, table: str) -> bool:
        """See the port."""
        return self.tables.pop(table, None) is not None


@dataclass
class EmittedRows:
    """Collects the rows that a transform emits for topics."""

    work: ChunkWork
    rows: list[EmittedRow] = field(default_factory=list)

    def __call__(self, sink: str, rows: Any) -> None:
        """Keep or drop the rows as the sealed plan says."""
        manifest = self.work.manifest
        found, target = require_allowed_sink(manifest.sinks, sink, self.work.mode), manifest.target
        if found.decision != SEND:
            return
        listed = [dict(row) for row in (rows.to_pylist() if hasattr(rows, "to_pylist") else rows)]
        for row in listed:
            require_row_columns(sink, found, target.column, list(row))
            name = name_partition(row[target.column], target.grain)
            key = {column: to_plain(row[column]) for column in found.key}
            value = {column: to_plain(item) for column, item in row.items()}
            read = describe_inputs(manifest.inputs)
            self.rows.append(EmittedRow(sink, name, _write(key), _write(value), read))

    def write(self, tables: MemoryEmitted) -> dict[str, int]:
        """Keep the rows with the attempt; counts by sink."""
        if not self.rows:
            return {}
        table = emitted_table(self.work.manifest.target.table, self.work.run_id)
        tables.ensure(table)
        tables.write(table, self.work.attempt, self.rows)
        counts = {}
        for sink in dict.fromkeys(row.sink for row in self.rows):
            mine = [row for row in self.rows if row.sink == sink]
            foreign = sum(row.partition not in self.work.chunk.partitions for row in mine)
            require_sound_rows(self.work, sink, len(mine), len({row.key for row in mine}), foreign)
            counts[f"{ROWS_EMITTED}:{sink}"] = len(mine)
        return counts


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_conforms: type[EmittedTable] = MemoryEmitted
