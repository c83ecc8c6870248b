"""Side tables in memory: rows are on a branch without readers until one commit with the publication tag lands them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlglot
from sqlglot import exp

from errata.errors import EngineError
from errata.model.manifest import TargetPin
from errata.model.partition import name_partition
from errata.model.refs import pub_tag, rows_branch
from errata.model.side_tables import ADDED, CHANGED, REMOVED, RUN, VERSION
from errata.ports.publish import EarlierCorrections, SideTable, SideTableWriter, StagedRows, Stamp
from errata.testing.lake import Lake
from errata.testing.metadata import MAIN, Metadata, Snapshot
from errata.testing.pinned_inputs import Rows, read_target
from errata.testing.refs import DAY_MS, find_marked, open_branch
from errata.testing.row_values import freeze_value, to_plain
from errata.testing.staging import append_rows
from errata.testing.table import Draft

_KEEP_DAYS = 7
_ROWS = "errata.rows"
_TYPES = {"STRING": "string", "TIMESTAMP": "timestamptz", "INT": "int", "BIGINT": "long"}
_TRANSFORMS = {"hours": "hour", "days": "day", "months": "month", "years": "year"}


@dataclass(frozen=True, slots=True)
class MemorySideTables:
    """Commits to side tables in memory."""

    lake: Lake

    def open_branch(self, table: str, publication_id: str) -> str:
        """See the port."""
        branch = f"{rows_branch(publication_id, 1)}_{uuid.uuid4().hex[:8]}"
        open_branch(self.lake.table(table), branch, _KEEP_DAYS)
        return branch

    def staged(self, table: str, branch: str) -> StagedRows:
        """See the port."""
        files = _require_staged(self.lake.table(table).metadata, branch).files.values()
        return StagedRows(sum(len(file.rows) for file in files), len(files))

    def list_run_commits(self, table: str, run_id: str) -> tuple[Mapping[str, str], ...]:
        """See the port."""
        found = [
            {"snapshot_id": one.snapshot_id, **one.summary}
            for one in self.lake.table(table).metadata.snapshots.values()
        ]
        return tuple(one for one in found if one.get("errata.run") == run_id)

    def landed(self, table: str, publication_id: str) -> str | None:
        """See the port."""
        return _find_landed(self.lake.table(table).metadata, publication_id)

    def land(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        """See the port."""

        def act(draft: Draft) -> str:
            if found := _find_landed(draft.seen, publication_id):
                return found
            if pub_tag(publication_id) in draft.seen.refs:
                raise EngineError(f"{publication_id} was closed behind a fence; its rows are not shown in {table}")
            files = list(_require_staged(draft.seen, branch).files.values())
            made = draft.add_snapshot(MAIN, "append", add=files, summary=properties)
            draft.set_ref(pub_tag(publication_id), made.snapshot_id, age_ms=_KEEP_DAYS * DAY_MS)
            draft.drop_ref(branch)
            return made.snapshot_id

        return self.lake.table(table).commit(act)

    def head(self, table: str) -> str:
        """See the port."""
        found = self.lake.table(table).metadata.head
        return found.snapshot_id if found else ""


def _find_landed(seen: Metadata, publication_id: str) -> str | None:
    tagged = seen.refs.get(pub_tag(publication_id))
    if tagged is not None:
        own = seen.snapshots[tagged.snapshot_id].summary.get("errata.publication") == publication_id
        return tagged.snapshot_id if own else None
    return next(iter(find_marked(seen, "errata.publication", publication_id)), None)


def _require_staged(seen: Metadata, branch: str) -> Snapshot:
    held = seen.refs.get(branch)
    head = seen.snapshots[held.snapshot_id] if held else None
    if head is None or branch not in (head.summary.get("errata.branch"), head.summary.get(_ROWS)):
        raise EngineError(f"branch {branch} of {seen.table} was dropped while it was written")
    return head


@dataclass(frozen=True, slots=True)
class MemorySideTableWriter:
    """Writes rows of side tables in memory."""

    lake: Lake

    def create(self, statements: Sequence[str]) -> None:
        """See the port."""
        for statement in statements:
            self._create(sqlglot.parse_one(statement, read="spark"))

    def _create(self, statement: exp.Expr) -> None:
        name, select = _table_name(statement.this), statement.expression
        if name in self.lake.tables:
            return
        source = self.lake.table(_table_name(select.args.get("from_") or select.args["from"])).metadata.schema
        columns: dict[str, str] = {}
        for one in select.expressions:
            if isinstance(one, exp.Star):
                columns |= {field.name: field.type for field in source.fields}
            elif isinstance(one, exp.Alias):
                columns[one.alias] = _TYPES[one.this.to.sql("spark").upper()]
            else:
                columns[one.name] = source.find(one.name).type
        self.lake.create(name, columns, partition=_find_partition(statement))

    def corrections(
        self,
        place: tuple[str, str],
        target: TargetPin,
        before: tuple[str, str | None],
        after: tuple[str, str],
        partitions: Sequence[str],
        columns: Sequence[str],
        stamp: Stamp,
        told: EarlierCorrections | None = None,
    ) -> None:
        """See the port."""
        values = [name for name in columns if name not in target.key]
        sides = [
            _group_by_key(_read(self.lake, target, table, snapshot, partitions), target)
            for table, snapshot in (before, after)
        ]
        earlier = self._find_earlier(place[0], target, told) if told else {}
        made = list[dict[str, Any]]()
        for key in sorted(sides[0].keys() | sides[1].keys() | earlier.keys(), key=repr):
            old, new = ([_to_json(row, values) for row in side.get(key, ())] for side in sides)
            old, new = sorted(earlier.get(key, old)), sorted(new)
            if old == new:
                continue
            sample = next(row for side in (*sides, self._keys(place[0], target)) for row in side.get(key, ()))
            pairs = [(CHANGED, old[0], new[0])] if len(old) == len(new) == 1 else [
                *((REMOVED, one, None) for one in old), *((ADDED, None, one) for one in new)
            ]  # fmt: skip
            named = {name: sample[name] for name in target.key}
            made += [
                {**named, "kind": kind, "partition": key[0], "old": was, "new": now, **_stamp(stamp)}
                for kind, was, now in pairs
            ]
        self._append(place, made)

    def _find_earlier(
        self, table: str, target: TargetPin, told: EarlierCorrections
    ) -> dict[tuple[Any, ...], list[str]]:
        """The last earlier value of each key, as JSON; none for a key whose row was removed."""
        order = {name: n for n, name in enumerate(told.publications)}
        last: dict[tuple[Any, ...], tuple[int, list[str]]] = {}
        rows = [row for row in self.lake.table(table).rows() if row["partition"] in told.partitions]
        for row in sorted(rows, key=lambda one: order.get(one["publication_id"], -1)):
            if row["publication_id"] in order:
                key = (row["partition"], *(freeze_value(row[name]) for name in target.key))
                n, held = last.get(key, (-1, []))
                kept = held if n == order[row["publication_id"]] else []
                last[key] = (order[row["publication_id"]], [*kept, *([row["new"]] if row["new"] is not None else [])])
        return {key: values for key, (_, values) in last.items()}

    def _keys(self, table: str, target: TargetPin) -> dict[tuple[Any, ...], Rows]:
        found: dict[tuple[Any, ...], Rows] = {}
        for row in self.lake.table(table).rows():
            key = (row["partition"], *(freeze_value(row[name]) for name in target.key))
            found.setdefault(key, []).append(row)
        return found

    def reversals(
        self, place: tuple[str, str], key: Sequence[str], publications: Mapping[str, Sequence[str]], stamp: Stamp
    ) -> None:
        """See the port."""
        back = {ADDED: REMOVED, REMOVED: ADDED}
        rows = [
            row
            for row in self.lake.table(place[0]).rows()
            if row["partition"] in publications.get(row["publication_id"], ())
        ]
        self._append(place, [
            {**{name: row[name] for name in key}, "kind": back.get(row["kind"], row["kind"]),
             "partition": row["partition"], "old": row["new"], "new": row["old"], **_stamp(stamp)}
            for row in rows
        ])  # fmt: skip

    def versions(
        self, place: tuple[str, str], target: TargetPin, snapshot_id: str, numbers: Mapping[str, int], run_id: str
    ) -> None:
        """See the port."""
        rows = read_target(self.lake, target.staging, snapshot_id, list(numbers))
        self._append(place, [
            {**row, RUN: run_id, VERSION: numbers[name_partition(row[target.column], target.grain)]} for row in rows
        ])  # fmt: skip

    def _append(self, place: tuple[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
        table = self.lake.table(place[0])
        stored = [table.metadata.schema.store(row) for row in rows]
        append_rows(table, place[1], stored, (_ROWS, place[1]), {})

    def newest_versions(self, table: str, target: TargetPin, partitions: Sequence[str]) -> Mapping[str, int]:
        """See the port."""
        found: dict[str, int] = {}
        for row in self.lake.table(table).rows():
            name = name_partition(row[target.column], target.grain)
            if name in partitions:
                found[name] = max(found.get(name, 0), row[VERSION])
        return found

    def show(self, view: str, query: str) -> None:
        """See the port."""
        self.lake.views[view] = query

    def drop_view(self, view: str) -> None:
        """See the port."""
        self.lake.views.pop(view, None)


def _read(lake: Lake, target: TargetPin, table: str, snapshot_id: str | None, partitions: Sequence[str]) -> Rows:
    pin = target.staging if table == target.staging.table else target
    return read_target(lake, pin, snapshot_id, partitions)


def _group_by_key(rows: Rows, target: TargetPin) -> dict[tuple[Any, ...], Rows]:
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        place = name_partition(row[target.column], target.grain)
        found.setdefault((place, *(freeze_value(row[name]) for name in target.key)), []).append(row)
    return found


def _to_json(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return json.dumps({name: to_plain(row[name]) for name in names}, separators=(",", ":"), ensure_ascii=False)


def _stamp(stamp: Stamp) -> dict[str, Any]:
    at = datetime.fromisoformat(stamp.at)
    return {
        "reason": stamp.reason, "run_id": stamp.run_id, "publication_id": stamp.publication_id,
        "at": at if at.tzinfo else at.replace(tzinfo=UTC),
    }  # fmt: skip


def _table_name(node: Any) -> str:
    found = node if isinstance(node, exp.Table) else node.find(exp.Table)
    return ".".join(part.name for part in found.parts)


def _find_partition(statement: exp.Expr) -> tuple[str, str] | None:
    found = statement.find(exp.PartitionedByProperty)
    if found is None:
        return None
    first = found.this.expressions[0]
    if isinstance(first, exp.Anonymous):
        return first.expressions[0].name, _TRANSFORMS[first.this.lower()]
    column = first.find(exp.Column) or first.find(exp.Identifier)
    return (column.name if column else first.name), "identity"


_conforms: type[SideTable] = MemorySideTables
_writer_conforms: type[SideTableWriter] = MemorySideTableWriter
