"""Read an input with several schema eras as one frame: each shape is read with its own schema, adapted, and unioned.

A value that cannot be cast, or that a cast would change, never becomes NULL or another value: its row is quarantined
with the reason ``cast COLUMN``. Invalid text (a lone surrogate) is quarantined with ``text COLUMN``. Runs no Spark
action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import NO_ACCESS, InputAccess
from errata.engines.spark.inputs.exact_cast import is_changed
from errata.engines.spark.inputs.protection import protect_rows
from errata.engines.spark.inputs.recorded_rows import (
    FIRST,
    LAST,
    LINE_COLUMNS,
    add_spans,
    cut_rows,
    find_origin,
    place_rows,
)
from errata.engines.spark.inputs.row_rules import CAST, DECISION_TYPE, ORIGIN, OUT, SOURCE, add_source, screen_rows
from errata.engines.spark.inputs.source_files import FilesPart, add_partition_column, read_files, select_files
from errata.errors import ManifestTampered
from errata.model.kafka.declaration import RECORD_COLUMNS
from errata.model.manifest import InputPin, SourceFile
from errata.model.partition import WHOLE, Grain
from errata.model.partition_sql import quoted
from errata.model.product.eras import ColumnSource, Era, eras_or_default, find_matching_eras, resolve_columns
from errata.model.product.input_policy import TEXT_MASKS
from errata.model.types import normalize_type, to_spark_type
from errata.ports.measure import LISTED

_EVENT_TIME = "__errata_event_time"


def read_files_by_era(
    session: SparkSession,
    pin: InputPin,
    part: FilesPart,
    partitions: Sequence[str],
    grain: Grain,
    kind: str,
    access: InputAccess = NO_ACCESS,
) -> DataFrame:
    """The files of these partitions, one read per era and schema."""
    groups: dict[tuple[str, int], dict[str, list[SourceFile]]] = {}
    eras = {era.name: era for era in eras_or_default(pin.eras)}
    for partition, files in select_files(pin, part, partitions).items():
        for file in files:
            era = _require_one_era(pin, partition, find_matching_eras(pin.eras, partition, pin.schemas[file.schema]))
            groups.setdefault((era.name, file.schema), {}).setdefault(partition, []).append(file)
    shapes = []
    for (name, number), found in sorted(groups.items()):
        schema = _select_readable(pin.schemas[number])
        rows = read_files(
            session, pin, sorted({file.path for files in found.values() for file in files}), _to_ddl(schema)
        )
        rows = rows.withColumn(ORIGIN, find_origin(pin, schema))
        if pin.recording is not None:
            shapes.append(_adapt_recorded(rows, pin, eras[name], schema, found, grain, kind, access))
            continue
        placed = add_partition_column(rows, pin, {key: tuple(files) for key, files in found.items()}, grain, kind)
        shapes.append(_adapt_protected(placed, pin, eras[name], schema, access))
    every = _union_shapes(session, pin, shapes)
    is_cut = pin.recording is not None and pin.partition is not None
    return cut_rows(every, pin, kind, grain, partitions) if is_cut else every


def _adapt_recorded(
    rows: DataFrame,
    pin: InputPin,
    era: Era,
    schema: Mapping[str, str],
    found: Mapping[str, Sequence[SourceFile]],
    grain: Grain,
    kind: str,
    access: InputAccess,
) -> DataFrame:
    if pin.partition is None:
        return _adapt_protected(rows, pin, era, schema, access)
    files = list({file.path: file for listed in found.values() for file in listed}.values())
    placed = add_spans(rows, pin, files, schema, kind, grain)
    place = partial(place_rows, pin=pin, kind=kind, grain=grain)
    return _adapt_protected(placed, pin, era, schema, access, place)


def _adapt_protected(
    rows: DataFrame,
    pin: InputPin,
    era: Era,
    schema: Mapping[str, str],
    access: InputAccess,
    place: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> DataFrame:
    """Rows in the transform's columns; what nobody may see is masked before the source row is copied."""
    safe = protect_rows(rows, pin, access, find_source_names(era))
    return adapt_rows(add_source(safe, tuple(schema)), pin, era, describe_masked(pin, era, schema), place)


def find_source_names(era: Era) -> dict[str, str]:
    """Declared column → column of the source, for columns that an era renames."""
    return {new: old for old, new in era.rename.items()}


def describe_masked(pin: InputPin, era: Era, schema: Mapping[str, str]) -> Mapping[str, str]:
    """The schema of an era's rows after masking: most masks turn a value into text."""
    named = find_source_names(era)
    masked = {named.get(name, name): "string" for name, how in pin.masks.items() if how in TEXT_MASKS}
    return {name: masked.get(name, kind) for name, kind in schema.items()}


def read_table_by_era(
    pin: InputPin,
    read: Callable[[Sequence[str]], DataFrame],
    partitions: Sequence[str],
    access: InputAccess = NO_ACCESS,
) -> DataFrame:
    """A table's partitions, one read per era; ``read`` reads the given partitions of the pinned snapshot."""
    origin = F.lit(f"{pin.location}@{pin.snapshot_id}")
    if not pin.columns:
        return screen_rows(add_source(protect_rows(read(partitions), pin, access)).withColumn(ORIGIN, origin), pin)
    schema = _select_readable(pin.schemas[0])
    eras = {era.name: era for era in eras_or_default(pin.eras)}
    groups: dict[str, list[str]] = {}
    if pin.partition is None or WHOLE in pin.era_of:
        groups[_find_era(pin, WHOLE).name] = list(partitions)
    else:
        for name in partitions:
            groups.setdefault(_find_era(pin, name).name, []).append(name)
    if not groups:  # no partition is requested; any era that the plan has checked gives the right columns
        groups[next((name for found in pin.era_of.values() for name in found), next(iter(eras)))] = []
    shapes = [
        _adapt_protected(read(names).withColumn(ORIGIN, origin), pin, eras[era], schema, access)
        for era, names in sorted(groups.items())
    ]
    return _union_shapes(None, pin, shapes)


def _find_era(pin: InputPin, partition: str) -> Era:
    """The era sealed for a partition of a table, or the matching era, since metadata may not list every partition."""
    sealed = pin.era_of.get(partition)
    if sealed is None:
        return _require_one_era(pin, partition, find_matching_eras(pin.eras, partition, pin.schemas[0]))
    return _require_one_era(pin, partition, [era for era in eras_or_default(pin.eras) if era.name in sealed])


def _require_one_era(pin: InputPin, partition: str, eras: Sequence[Era]) -> Era:
    if len(eras) != 1:
        raise ManifestTampered(f"input {pin.name}: {partition} is in {len(eras)} eras; expected exactly one")
    return eras[0]


def _select_readable(schema: Mapping[str, str]) -> dict[str, str]:
    """Columns that Spark can read; a plan that needs any other column is refused."""
    return {name: kind for name, kind in schema.items() if normalize_type(kind)}


def _to_ddl(schema: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {to_spark_type(kind)}" for name, kind in schema.items())


def adapt_rows(
    rows: DataFrame,
    pin: InputPin,
    era: Era,
    schema: Mapping[str, str],
    place: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    broken: Column | None = None,
) -> DataFrame:
    """Rows in the transform's columns, each with its outcome; ``broken`` says why a row as a whole cannot be read."""
    from_path = pin.partition if pin.kind == "files" else None
    deliveries = resolve_columns(era, pin.columns, schema, from_path)
    if wrong := [one.problem for one in deliveries if one.problem]:
        raise ManifestTampered(f"input {pin.name}, era {era.name}: column {wrong[0]}; the plan proved otherwise")
    values = {one.column: deliver_value(one) for one in deliveries}
    if broken is not None and pin.partition is not None:
        # a generator, as for the value itself: a filter would read the time again for each of its ends
        rows = rows.withColumn(_EVENT_TIME, F.explode(F.array(values[pin.partition])))
        values[pin.partition] = F.col(_EVENT_TIME)
    # what Kafka keeps beside a value is valid text, and need not be read where no transform asks for it
    checked = [one for one in deliveries if broken is None or one.column not in RECORD_COLUMNS]
    failed = find_cast_failure(checked, values)
    if broken is not None and pin.partition is not None:
        event_time = values[pin.partition]
        failed = F.coalesce(broken, failed, F.when(event_time.isNull(), F.lit(f"{pin.partition} is missing")))
        # a record without an event time is quarantined, and counts for the partition of its record time
        known = F.col("kafka_timestamp").cast(to_spark_type(pin.columns[pin.partition]))
        values[pin.partition] = F.coalesce(event_time, known)
    ordered = [values.get(name, F.col(quoted(name))).alias(name) for name in pin.columns]
    beside = [name for name in (*LINE_COLUMNS, FIRST, LAST, LISTED) if name in rows.columns]
    adapted = rows.select(*ordered, failed.alias(CAST), ORIGIN, SOURCE, *beside)
    return screen_rows(place(adapted), pin)


def deliver_value(one: ColumnSource) -> Column:
    """The value of one declared column, cast to its type; NULL where the cast fails."""
    kind = to_spark_type(one.kind)
    if one.source is None:
        return F.lit(one.default).cast(kind)
    value = F.col(quoted(one.source))
    if one.found == one.kind:
        return value
    return value.try_cast(kind) if one.needs_cast else value.cast(kind)


def find_cast_failure(deliveries: Sequence[ColumnSource], values: Mapping[str, Column] | None = None) -> Column:
    """The reason for the first column whose value cannot be converted; NULL if all can.

    ``values`` are the converted columns, where they are known already.
    """
    terms = []
    for one in deliveries:
        if one.needs_cast:
            value = deliver_value(one) if values is None else values[one.column]
            lost = is_changed(F.col(quoted(str(one.source))), str(one.found), value, one.kind)
            terms.append(F.when(lost, F.lit(f"cast {one.column}")))
        elif one.source is not None and one.found == "string":
            terms.append(F.when(~F.is_valid_utf8(F.col(quoted(one.source))), F.lit(f"text {one.column}")))
    return F.coalesce(*terms) if terms else F.lit(None).cast("string")


def _union_shapes(session: SparkSession | None, pin: InputPin, shapes: Sequence[DataFrame]) -> DataFrame:
    if shapes:
        return reduce(DataFrame.unionAll, shapes)
    assert session is not None  # noqa: S101 - a table always has a frame
    beside = f"{ORIGIN} string, {SOURCE} string, {OUT} {DECISION_TYPE}"
    return session.createDataFrame([], f"{_to_ddl(pin.columns)}, {beside}")
