"""Iceberg's Java API through a py4j gateway: catalogs, tables, scope expressions, file lists and commits.

Needs a JVM but no SparkContext. File lists stay in Java: py4j's reference cycles keep every Java object alive that
Python has called, and a list of 20,000 files with statistics takes most of a 1 GB heap.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from errata.engines.iceberg.catalogs import java_properties, refuse_missing_file
from errata.engines.iceberg.commits.clock import require_clock
from errata.errors import EngineError, NotFound, RunExpired
from errata.model.calendar_math import first_second, format_stored_ordinal
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.partition import NULL, Grain, fold_ranges, to_ordinal, value_from_text, value_to_text
from errata.model.product import Catalog
from errata.model.span import Span
from errata.model.table import DataFile, TableColumn, TableSchema

_ABSENT = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
_FIELD, _NONE, _BETWEEN = "\x1f", "\x00", "\x1e"
_ESCAPED = {"\\": "\\", "n": "\n", "f": _FIELD, "0": _NONE}
_ESCAPES = {ord(meant): f"\\{letter}" for letter, meant in _ESCAPED.items()}
_ESCAPE = re.compile(r"\\([\\nf0])")
_MAX_RANGES = 64
ALL_ROWS = "*"
"""The scope that contains every row."""
CONTENT = {"POSITION_DELETES": "position_deletes", "EQUALITY_DELETES": "equality_deletes", "DATA": "data"}


class JavaIceberg:
    """Iceberg catalogs in one JVM."""

    def __init__(self, gateway: Any, catalogs: Mapping[str, Catalog], hadoop: Mapping[str, str] | None = None) -> None:
        self._gateway = gateway
        self._catalogs = catalogs
        self._hadoop = hadoop or {}
        self._open: dict[str, Any] = {}

    @property
    def jvm(self) -> Any:
        """The gateway's JVM view."""
        return self._gateway.jvm

    def find_class(self, name: str) -> Any:
        """A class by its full name, in one request.

        ``jvm.org.apache…`` asks for every part of the name whether it is a class, and the JVM looks into every jar
        each time.
        """
        return getattr(self.jvm, name)

    @property
    def bulk(self) -> Any:
        """The ``ErrataFiles`` helper in this JVM, compiled on first use."""
        with _compile_lock:
            return _compile_helpers(self._gateway)

    def load(self, table: str) -> Any:
        """A fresh table handle; nothing is cached."""
        from py4j.protocol import Py4JJavaError

        catalog, identifier = self.place(table)
        # without asking tableExists() first, which would load the table as well
        try:
            return catalog.loadTable(identifier)
        except Py4JJavaError as problem:
            if problem.java_exception.getClass().getSimpleName() not in _ABSENT:
                raise
            raise NotFound(
                f"table {table} is not in catalog {table.partition('.')[0]}", hint="errata check", table=table
            ) from None

    def place(self, table: str) -> tuple[Any, Any]:
        """The catalog of a table and the table's identifier in it."""
        name, *rest = table.split(".")
        identifiers = self.find_class("org.apache.iceberg.catalog.TableIdentifier")
        return self._open_catalog(name), identifiers.parse(".".join(rest))

    def reach(self, name: str) -> int:
        """Number of top-level namespaces in the catalog; raises if it does not answer."""
        from py4j.protocol import Py4JError

        try:
            return int(self._open_catalog(name).listNamespaces().size())
        except Py4JError as problem:
            raise EngineError(f"catalog {name} did not answer: {java_message(problem)}", catalog=name) from problem

    @contextmanager
    def commit(self, table: str) -> Iterator[Any]:
        """An ``ErrataCommit``: the newest metadata version of a table and the one commit that may follow it.

        Raises ``EngineError`` if the table is dated ahead and would refuse a commit now.
        """
        begun = self.bulk.begin(self.load(table))
        try:
            require_clock(begun.table())
            yield begun
        finally:
            begun.close()

    def _open_catalog(self, name: str) -> Any:
        if name not in self._open:
            refuse_missing_file(self._catalogs[name])
            conf = self.find_class("org.apache.hadoop.conf.Configuration")()
            for key, value in self._hadoop.items():
                conf.set(key, value)
            properties = self.find_class("java.util.HashMap")()
            for key, value in java_properties(self._catalogs[name]).items():
                properties.put(key, value)
            catalogs = self.find_class("org.apache.iceberg.CatalogUtil")
            self._open[name] = catalogs.buildIcebergCatalog(name, properties, conf)
        return self._open[name]

    def scope(self, table: Any, target: TargetPin, partitions: Sequence[str]) -> str:
        """A predicate for ``ErrataFiles`` that every row of the partitions satisfies; it prunes by any transform.

        It names the column by field id, because each snapshot is scanned with the names of its own schema. Scattered
        partitions are merged into at most 64 ranges, so rows of other partitions may satisfy it as well: callers that
        list files with it must also say which partitions, or which paths, they want.
        """
        ranges = _merge_ranges([*_iterate_ranges(target, [name for name in partitions if name != NULL])])
        lines = [_FIELD.join(_escape_text(part) for part in each) for each in ranges]
        return "\n".join([str(self.field(table, target)[0]), *lines, *(["n"] if NULL in partitions else [])])

    def live(self, table: Any, snapshot_id: str, target: TargetPin, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of a snapshot that contain, or may contain, rows of the partitions."""
        wanted = "\n".join(_to_raw_value(target, name) for name in partitions)
        return self._describe_files(
            table, snapshot_id, self.scope(table, target, partitions), target, partitions, wanted
        )

    def list_all_files(self, table: Any, snapshot_id: str, target: TargetPin) -> tuple[DataFile, ...]:
        """Every data file of a snapshot."""
        return self._describe_files(table, snapshot_id, ALL_ROWS, target, (), "")

    def _describe_files(
        self, table: Any, snapshot_id: str, scope: str, target: TargetPin, partitions: Sequence[str], wanted: str
    ) -> tuple[DataFile, ...]:
        source, transform = self.field(table, target)
        rows = parse_rows(self.bulk.live(table, int(snapshot_id), scope, source, transform, wanted))
        return tuple(_parse_data_file(target, row, partitions) for row in rows)

    def schema(self, table: Any) -> TableSchema:
        """The current schema of this handle's metadata version."""
        fields = list(parse_rows(self.bulk.columns(table)))
        return TableSchema(
            schema_id=int(table.schema().schemaId()),
            last_column_id=int(table.operations().current().lastColumnId()),
            columns={name: kind for _, name, kind in fields},
            field_ids={name: int(number) for number, name, _ in fields},
        )

    def columns(self, table: Any, schema_id: int) -> tuple[TableColumn, ...]:
        """Columns of one of the table's schemas; empty if the table no longer has it."""
        rows = parse_rows(self.bulk.schema(table, schema_id))
        return tuple(TableColumn(int(number), name, None if text == _NONE else text) for number, name, text in rows)

    def field(self, table: Any, target: TargetPin) -> tuple[int, str]:
        """Source id and transform of the partition field, which identify it in any spec, at any position."""
        planned = table.schemas().get(target.schema_id)
        # look in the planned schema first, because the column may have been renamed since
        found = (planned and planned.findField(target.column)) or table.schema().findField(target.column)
        if found is None:
            raise RunExpired(
                f"{target.table} has no column {target.column}, by which it was partitioned when the run was planned",
                state="main is unchanged",
                hint="plan again; if the table was replaced by mistake, restore it first",
            )
        return int(found.fieldId()), target.transform

    def current_column(self, table: Any, target: TargetPin) -> str | None:
        """The current name of the partition column; None if it was dropped."""
        name = table.schema().findColumnName(self.field(table, target)[0])
        return None if name is None else str(name)


_compile_lock = threading.Lock()


@cache
def _compile_helpers(gateway: Any) -> Any:
    """Compile the Java helpers, once per JVM: py4j caches methods by class name, so two classes would get mixed up."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(_read_java_source())
    kind = compiler.getClassLoader().loadClass("ErrataFiles")
    none = gateway.new_array(jvm.Class, 0)
    return kind.getDeclaredConstructor(none).newInstance(gateway.new_array(jvm.Object, 0))


def _read_java_source() -> str:
    """Both classes as one compilation unit with all imports first, because each class uses the other."""
    lines = [
        line
        for name in ("ErrataFiles.java", "ErrataCommit.java")
        for line in files("errata.engines.iceberg.commits").joinpath(name).read_text("utf-8").splitlines()
    ]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def parse_rows(text: str) -> Iterator[list[str]]:
    """Records of a bulk result, as lists of fields."""
    return ([_unescape_field(field) for field in line.split(_FIELD)] for line in text.split("\n") if line)


def _unescape_field(field: str) -> str:
    """Undo the escaping that ``ErrataFiles`` applies to record and field separators."""
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], field) if "\\" in field else field


def parse_partition(target: TargetPin, raw: str) -> str | None:
    """A raw partition value from a bulk result as canonical text; None if neither spec nor bounds determine it."""
    if raw.startswith("?"):
        return None
    if raw == _NONE:
        return NULL
    value = raw.removeprefix("=")
    if target.transform == "identity" and target.column_type != "date":
        return value_to_text(value)
    grain = Grain.DAY if target.transform == "identity" else Grain(target.transform)
    return format_stored_ordinal(grain, int(value))


def _parse_data_file(target: TargetPin, row: list[str], partitions: Sequence[str]) -> DataFile:
    path, rows, size, raw, *rest = row
    deletes = tuple(ExpectedFile(rest[n], int(rest[n + 1]), CONTENT[rest[n + 2]]) for n in range(0, len(rest), 3))
    partition = parse_partition(target, raw)
    shared_by = parse_span(target, raw).filter_possible(partitions) if partition is None else ()
    return DataFile(path, int(rows), int(size), partition, deletes, shared_by)


def parse_span(target: TargetPin, raw: str) -> Span:
    """The range of partitions, from a raw value of a bulk result, for a file that is not in a single partition."""
    if raw == "?":
        return Span(target.grain)
    first, _, last = raw[2:].partition(_BETWEEN)
    if target.transform == "identity" and target.column_type != "date":
        is_number = target.column_type in ("int", "long")
        ends = (int(first), int(last)) if is_number else (first.encode(), last.encode())
        return Span(target.grain, ends, has_null=raw[1] == "n")
    return Span(target.grain, (int(first), int(last)), has_null=raw[1] == "n")


def _iterate_ranges(target: TargetPin, partitions: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    """Consecutive partitions as ranges: "#" for numbers or "'" for text, then the first and last column value.

    Dates are days and times are microseconds since 1970, which no year can overflow.
    """
    grain, kind = target.grain, target.column_type
    if not grain.is_time:
        values = [value_from_text(name) or "" for name in partitions]
        is_number = kind in ("int", "long")
        for value in sorted(values, key=int if is_number else None):
            yield ("#" if is_number else "'", value, value)
        return
    # from seconds to days, or from seconds to microseconds
    divided, times = (86_400, 1) if kind == "date" else (1, 1_000_000)
    for first, last in fold_ranges(grain, partitions):
        if kind == "string":
            yield ("'", first, last)  # canonical time texts sort chronologically
        else:
            low, end = first_second(grain, to_ordinal(grain, first)), first_second(grain, to_ordinal(grain, last) + 1)
            yield ("#", low // divided * times, end // divided * times - 1)


def _merge_ranges(ranges: Sequence[tuple[str, Any, Any]]) -> Iterator[tuple[str, str, str]]:
    """At most 64 ranges that cover the given ones, because every file is compared with each range."""
    size = -(-len(ranges) // _MAX_RANGES) or 1
    for n in range(0, len(ranges), size):
        group = ranges[n : n + size]
        yield group[0][0], str(group[0][1]), str(group[-1][2])


def _to_raw_value(target: TargetPin, partition: str) -> str:
    """The inverse of :func:`parse_partition`: a partition as ``ErrataFiles`` writes it."""
    if partition == NULL:
        return _NONE
    if not target.grain.is_time:
        return f"={_escape_text(value_from_text(partition) or '')}"
    return f"={partition if target.column_type == 'string' else to_ordinal(target.grain, partition)}"


def java_message(problem: Exception) -> str:
    """The first line of a Java error, without py4j's preface."""
    thrown = getattr(problem, "java_exception", None)
    text = str(problem) if thrown is None else str(thrown.toString())
    return text.strip().partition("\n")[0]


def join_paths(paths: Iterable[str]) -> str:
    """Paths joined into the single string that ``ErrataFiles`` expects."""
    return "\n".join(_escape_text(path) for path in paths)


def _escape_text(text: str) -> str:
    return text.translate(_ESCAPES)
