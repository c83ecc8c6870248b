"""The Java side of Iceberg through a py4j gateway: catalogs, tables, scope expressions and bulk file lists.

Needs a JVM but no SparkContext. Every table handle it gives out is one metadata version: a transaction is opened first,
and what is checked and what is committed both come from that transaction's base.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from errata.engines.iceberg.catalogs import java_properties
from errata.errors import EngineError, NotFound
from errata.model.columns import TableSchema
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.partition import NULL, Grain, fold, from_ordinal, shift, start_of, value_of, value_text
from errata.model.product import Catalog
from errata.model.span import Span
from errata.model.table import DataFile

__all__ = ["JavaIceberg", "partition_text", "rows_of", "span_of"]

_ABSENT = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
_FIELD, _NONE, _BETWEEN = "\x1f", "\x00", "\x1e"
_ESCAPED = {"\\": "\\", "n": "\n", "f": _FIELD, "0": _NONE}
_ESCAPES = {ord(meant): f"\\{letter}" for letter, meant in _ESCAPED.items()}
_ESCAPE = re.compile(r"\\([\\nf0])")
_CONTENT = {"POSITION_DELETES": "position_deletes", "EQUALITY_DELETES": "equality_deletes", "DATA": "data"}


class JavaIceberg:
    """Iceberg catalogs in one JVM."""

    def __init__(self, gateway: Any, catalogs: Mapping[str, Catalog], hadoop: Mapping[str, str] | None = None) -> None:
        self._gateway = gateway
        self._catalogs = catalogs
        self._hadoop = hadoop or {}
        self._open: dict[str, Any] = {}

    @property
    def jvm(self) -> Any:
        """The gateway's view of the JVM."""
        return self._gateway.jvm

    @property
    def bulk(self) -> Any:
        """``ErrataFiles`` in this JVM."""
        with _compiling:
            return _compiled(self._gateway)

    def load(self, table: str) -> Any:
        """A fresh table handle; nothing is cached."""
        from py4j.protocol import Py4JJavaError

        catalog, identifier = self.place(table)
        # tableExists() would load the table, too
        try:
            return catalog.loadTable(identifier)
        except Py4JJavaError as problem:
            if problem.java_exception.getClass().getSimpleName() not in _ABSENT:
                raise
            raise NotFound(f"table {table} is not in catalog {table.partition('.')[0]}", table=table) from None

    def place(self, table: str) -> tuple[Any, Any]:
        """The catalog of a table and its identifier in there."""
        name, *rest = table.split(".")
        return self._catalog(name), self.jvm.org.apache.iceberg.catalog.TableIdentifier.parse(".".join(rest))

    def reach(self, name: str) -> int:
        """How many namespaces the catalog has at its top; raises when it does not answer."""
        from py4j.protocol import Py4JError

        try:
            return int(self._catalog(name).listNamespaces().size())
        except Py4JError as problem:
            raise EngineError(f"catalog {name} did not answer: {java_words(problem)}", catalog=name) from problem

    def begin(self, table: str) -> tuple[Any, Any]:
        """A table handle and a transaction on it, both on one metadata version.

        ``newTransaction()`` refreshes the handle, so it comes first; transaction tables cannot be scanned, so the
        handle is what is read, and it is never refreshed again.
        """
        handle = self.load(table)
        transaction = handle.newTransaction()
        return handle, transaction

    def _catalog(self, name: str) -> Any:
        if name not in self._open:
            conf = self.jvm.org.apache.hadoop.conf.Configuration()
            for key, value in self._hadoop.items():
                conf.set(key, value)
            properties = self.jvm.java.util.HashMap()
            for key, value in java_properties(self._catalogs[name]).items():
                properties.put(key, value)
            self._open[name] = self.jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(name, properties, conf)
        return self._open[name]

    def scope(self, target: TargetPin, partitions: Sequence[str]) -> Any:
        """The partitions as a predicate on the source column: typed half-open ranges, which prune by any transform.

        Never ``in(column, days)`` for a transform: that found none of the files of ``days(ts)``.
        """
        expressions = self.jvm.org.apache.iceberg.expressions.Expressions
        either = getattr(expressions, "or")
        both = getattr(expressions, "and")
        found = expressions.alwaysFalse()
        for first, last in fold(target.grain, partitions):
            if first == NULL:
                found = either(found, expressions.isNull(target.column))
                if last == NULL:
                    continue
            low, high = _bounds(target, first, last)
            after = expressions.greaterThanOrEqual(target.column, low)
            if high is None:
                found = either(found, expressions.equal(target.column, low))
            else:
                found = either(found, both(after, expressions.lessThan(target.column, high)))
        return found

    @property
    def everything(self) -> Any:
        """The predicate that every row meets."""
        return self.jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()

    def scan(self, table: Any, snapshot_id: str, target: TargetPin, partitions: Sequence[str]) -> Any:
        """Tasks (in Java) of the data files that may hold the partitions, with statistics."""
        return self.bulk.scan(table, int(snapshot_id), self.scope(target, partitions))

    def describe(
        self, table: Any, tasks: Any, target: TargetPin, partitions: Sequence[str] = ()
    ) -> tuple[DataFile, ...]:
        """Those tasks as values; of shared files it is told which of the partitions they may hold."""
        source, transform = self.field(table, target)
        rows = rows_of(self.bulk.describe(table, tasks, source, transform))
        return tuple(_data_file(target, row, partitions) for row in rows)

    def schema(self, table: Any) -> TableSchema:
        """The current schema of this handle's metadata version."""
        fields = list(rows_of(self.bulk.columns(table)))
        return TableSchema(
            schema_id=int(table.schema().schemaId()),
            last_column_id=int(table.operations().current().lastColumnId()),
            columns={name: kind for _, name, kind in fields},
            field_ids={name: int(number) for number, name, _ in fields},
        )

    def type(self, text: str) -> Any:
        """An Iceberg type by its text."""
        return self.jvm.org.apache.iceberg.types.Types.fromPrimitiveString(text)

    def field(self, table: Any, target: TargetPin) -> tuple[int, str]:
        """Source id and transform of the partition field: how it is found in any spec, at any position."""
        return table.schema().findField(target.column).fieldId(), target.transform


_compiling = threading.Lock()


@cache
def _compiled(gateway: Any) -> Any:
    """Once per JVM: py4j remembers methods by class name, so a second class of the same name would be mixed up."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(files("errata.engines.iceberg").joinpath("ErrataFiles.java").read_text("utf-8"))
    kind = compiler.getClassLoader().loadClass("ErrataFiles")
    none = gateway.new_array(jvm.Class, 0)
    return kind.getDeclaredConstructor(none).newInstance(gateway.new_array(jvm.Object, 0))


def rows_of(text: str) -> Iterator[list[str]]:
    """Records of a bulk answer."""
    return ([_meant(field) for field in line.split(_FIELD)] for line in text.split("\n") if line)


def _meant(field: str) -> str:
    """A field as it was before ``ErrataFiles`` escaped what separates records and fields."""
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], field) if "\\" in field else field


def partition_text(target: TargetPin, raw: str) -> str | None:
    """A raw partition value of the bulk lists as canonical text; None when neither spec nor bounds tell it."""
    if raw.startswith("?"):
        return None
    if raw == _NONE:
        return NULL
    value = raw.removeprefix("=")
    if target.transform == "identity" and target.column_type != "date":
        return value_text(value)
    grain = Grain.DAY if target.transform == "identity" else Grain(target.transform)
    return from_ordinal(grain, int(value))


def _data_file(target: TargetPin, row: list[str], partitions: Sequence[str]) -> DataFile:
    path, rows, size, raw, *rest = row
    deletes = tuple(ExpectedFile(rest[n], int(rest[n + 1]), _CONTENT[rest[n + 2]]) for n in range(0, len(rest), 3))
    partition = partition_text(target, raw)
    shared_by = span_of(target, raw).among(partitions) if partition is None else ()
    return DataFile(path, int(rows), int(size), partition, deletes, shared_by)


def span_of(target: TargetPin, raw: str) -> Span:
    """What a raw value of the bulk lists says of a file that is in no one partition."""
    if raw == "?":
        return Span(target.grain)
    first, _, last = raw[2:].partition(_BETWEEN)
    if target.transform == "identity" and target.column_type != "date":
        is_number = target.column_type in ("int", "long")
        ends = (int(first), int(last)) if is_number else (first.encode(), last.encode())
        return Span(target.grain, ends, has_null=raw[1] == "n")
    return Span(target.grain, (int(first), int(last)), has_null=raw[1] == "n")


def _bounds(target: TargetPin, first: str, last: str) -> tuple[Any, Any]:
    """Lower bound and exclusive upper bound as Iceberg literals; no upper bound means equality."""
    if target.column_type in ("int", "long"):
        return int(first), None
    if target.column_type == "string" and not target.grain.is_time:
        return value_of(first), None
    if target.column_type == "string":
        # canonical time text sorts as time does, so a span of text is a span of time
        return first, shift(target.grain, last, 1)
    end = shift(target.grain, last, 1)
    if target.column_type == "date":
        return start_of(target.grain, first).date().isoformat(), start_of(target.grain, end).date().isoformat()
    zone = "+00:00" if target.column_type == "timestamptz" else ""
    return tuple(start_of(target.grain, text).replace(tzinfo=None).isoformat() + zone for text in (first, end))  # type: ignore[return-value]


def java_words(problem: Exception) -> str:
    """What Java said, in one line and without py4j's preface."""
    thrown = getattr(problem, "java_exception", None)
    text = str(problem) if thrown is None else str(thrown.toString())
    return text.strip().partition("\n")[0]


def java_paths(paths: Iterable[str]) -> str:
    """Paths as the one string that ``ErrataFiles`` takes."""
    return "\n".join(path.translate(_ESCAPES) for path in paths)
