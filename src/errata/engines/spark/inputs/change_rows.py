"""Read a change log as the input of a transform: rows in declared columns, each with its outcome. Runs no Spark action.

Values go through the same exact casts and the same quarantine as those of files. Debezium writes dates as days and
timestamps as integers; they become text first. A row whose partition cannot be read is quarantined in the first
partition of the run, so that exactly one chunk accounts for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_partitions, partition_text, typed_partition
from errata.engines.spark.inputs.access import NO_ACCESS, Clusters, InputAccess
from errata.engines.spark.inputs.change_messages import (
    find_pinned_place,
    normalize_changes,
    parse_messages,
    read_commits,
    read_messages,
)
from errata.engines.spark.inputs.change_subjects import (
    has_another_subject,
    protect_change_rows,
    select_subject_texts,
)
from errata.engines.spark.inputs.eras import deliver_value, find_cast_failure
from errata.engines.spark.inputs.row_rules import CAST, ORIGIN, SOURCE, screen_rows
from errata.engines.spark.inputs.table_rebuild import build_history, list_changes, rebuild_state
from errata.errors import ManifestTampered
from errata.model.change_log.declaration import (
    BEFORE,
    CHANGES,
    HISTORY,
    READING_COLUMNS,
    STATE,
    ChangeCapture,
    list_row_columns,
)
from errata.model.change_log.log_pin import LogPin
from errata.model.manifest import InputPin
from errata.model.partition import WHOLE, Grain
from errata.model.partition_sql import quoted
from errata.model.product.eras import ColumnSource, find_matching_eras, resolve_columns
from errata.model.types import to_spark_type

_DAYS = (-719_162, 2_932_896)
"""Days since 1970 of the years 1 to 9999."""
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_WHOLE_NUMBER = r"\A-?[0-9]{1,18}\z"


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """The sealed messages of a change log: those of the changes, and those of the ends of transactions."""

    pin: InputPin
    ends: InputPin
    parts: Mapping[str, bytes]

    @property
    def log(self) -> LogPin:
        """What the plan sealed of it."""
        assert self.pin.log is not None  # noqa: S101 - only such inputs come here
        return self.pin.log

    def read_changes(self, session: SparkSession, clusters: Clusters) -> DataFrame:
        """Every change message, with the position where it counts from."""
        declared = self.log.declared
        messages = parse_messages(read_messages(session, find_pinned_place(self.pin, self.parts), clusters))
        marks = parse_messages(read_messages(session, find_pinned_place(self.ends, self.parts), clusters))
        return normalize_changes(messages, read_commits(marks), declared)


def screen_change_log(
    changes: DataFrame,
    pin: InputPin,
    partitions: Sequence[str],
    grain: Grain,
    kind: str,
    access: InputAccess = NO_ACCESS,
) -> DataFrame:
    """The rows of a reading in the transform's columns, each with its outcome, cut to these partitions."""
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    frames = [
        protect_change_rows(_adapt(rows, pin), pin, access)
        for rows in _list_readings(changes, pin, pin.log, partitions)
    ]
    if pin.partition is None:
        return screen_rows(reduce(DataFrame.unionAll, frames), pin)
    placed = [_place_rows(rows, pin, kind, grain) for rows in frames]
    if pin.log.since:
        placed = [_cut_since(rows, pin, grain, kind, n) for n, rows in enumerate(placed)]
    every = reduce(DataFrame.unionAll, placed)
    return screen_rows(every, pin).where(in_partitions(pin.partition, kind, grain, partitions))


def _list_readings(changes: DataFrame, pin: InputPin, log: LogPin, partitions: Sequence[str]) -> list[DataFrame]:
    span, reading = log.span, log.declared.reading
    if reading == HISTORY:
        return [build_history(changes, span)]
    if reading == STATE:
        return [rebuild_state(changes, span)]
    if log.declared.since is None:
        return [_split_moves(list_changes(changes, span), pin)]
    # partitions that a run has read get what changed since; others get the state, as if a snapshot had been taken
    frames = []
    if log.since:
        after = min(int(at) for at in log.since.values())
        frames.append(_split_moves(list_changes(changes, span, after), pin))
    if not log.since or any(name not in log.since for name in partitions):
        state = rebuild_state(changes, span).withColumn("op", F.lit("r"))
        frames.append(state.withColumn("before", F.lit(None).cast("map<string,string>")))
    return frames


def _split_moves(changes: DataFrame, pin: InputPin) -> DataFrame:
    """An update that moves a row to another partition or subject as a delete and a create, as Debezium does for keys.

    So every piece is about one subject, before and after.
    """
    column, differs = pin.partition, [*has_another_subject(pin)]
    if column is not None and column in _list_row_names(pin):
        differs.append(F.coalesce(F.col("before")[column] != F.col("row")[column], F.lit(False)))  # noqa: FBT003
    if not differs:
        return changes
    has_moved = (F.col("op") == "u") & reduce(Column.__or__, differs)
    none = F.lit(None).cast("map<string,string>")
    gone = F.struct(F.lit("d").alias("op"), F.col("before").alias("row"), F.col("before").alias("before"))
    made = F.struct(F.lit("c").alias("op"), F.col("row").alias("row"), none.alias("before"))
    same = F.struct("op", "row", "before")
    pieces = F.when(F.coalesce(has_moved, F.lit(False)), F.array(gone, made)).otherwise(F.array(same))  # noqa: FBT003
    others = [name for name in changes.columns if name not in ("op", "row", "before")]
    return changes.select(*others, F.explode(pieces).alias("__piece")).select(*others, "__piece.*")


def _adapt(rows: DataFrame, pin: InputPin) -> DataFrame:
    """Rows with typed columns, the reason of a failed cast, and the message they come from."""
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    declared = pin.log.declared
    own = READING_COLUMNS[declared.reading]
    text, groups = _expose_text(rows, pin, declared), _group_shapes(pin)
    beside = _build_reading_columns(declared)
    typed = {name: beside[name].cast(to_spark_type(kind)) for name, kind in own.items()}
    failed = F.lit(None).cast("string")
    shape = F.array_sort(F.map_keys("row"))
    is_known = F.lit(False)  # noqa: FBT003 - a literal
    values: dict[str, Column] = {}
    for deliveries, shapes in groups.items():
        is_here = F.coalesce(shape.isin(*(F.array(*map(F.lit, one)) for one in shapes)), F.lit(False))  # noqa: FBT003
        is_known |= is_here
        hidden = [_hide(one) for one in deliveries]
        failed = F.when(is_here, find_cast_failure(hidden)).otherwise(failed)
        for one, exposed in zip(deliveries, hidden, strict=True):
            otherwise = values.get(one.column, F.lit(None).cast(to_spark_type(one.kind)))
            # a row that is not there, such as that before an insert, has no default either
            has_row = F.col("before" if one.column not in _list_row_names(pin) else "row").isNotNull()
            values[one.column] = F.when(is_here & has_row, deliver_value(exposed)).otherwise(otherwise)
    failed = F.when(F.col("row").isNotNull() & ~is_known, F.lit("row of an unknown shape")).otherwise(failed)
    # nobody can be found and nothing be masked in a row that cannot be read, so that only its position is kept
    content = () if pin.subjects or pin.masks else ("row", "before")
    source = F.struct("op", "at", "lsn", "tx", *content)
    ordered = [{**values, **typed}[name].alias(name) for name in pin.columns]
    beside_row = [F.col("origin").alias(ORIGIN), source.alias(SOURCE), failed.alias(CAST)]
    return text.select(*ordered, *beside_row, *select_subject_texts(pin))


def _list_row_names(pin: InputPin) -> Mapping[str, str]:
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    return list_row_columns(pin.log.declared, pin.columns)


def _hide(one: ColumnSource) -> ColumnSource:
    return one if one.source is None else replace(one, source=f"__errata_text_{one.source}")


def _expose_text(rows: DataFrame, pin: InputPin, declared: ChangeCapture) -> DataFrame:
    """Rows with one column of text for each value that an era may deliver."""
    wanted: dict[str, str] = {}
    for deliveries in _group_shapes(pin):
        wanted |= {one.source: one.kind for one in deliveries if one.source is not None}
    made = {}
    for name, kind in wanted.items():
        is_before = declared.reading == CHANGES and name.startswith(BEFORE) and name not in _list_row_names(pin)
        value = F.col("before")[name.removeprefix(BEFORE)] if is_before else F.col("row")[name]
        made[f"__errata_text_{name}"] = _decode(value, kind, declared)
    return rows.withColumns(made)


def _group_shapes(pin: InputPin) -> dict[tuple[ColumnSource, ...], list[tuple[str, ...]]]:
    """Shapes of rows by how their columns are delivered."""
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    own, found = READING_COLUMNS[pin.log.declared.reading], dict[tuple[ColumnSource, ...], list[tuple[str, ...]]]()
    row_like = {name: kind for name, kind in pin.columns.items() if name not in own}
    for schema in pin.schemas:
        shape = tuple(sorted(name for name in schema if name not in own and not _is_shadow(name, schema, pin)))
        eras = find_matching_eras(pin.eras, WHOLE, schema)
        if len(eras) != 1:
            raise ManifestTampered(f"input {pin.name}: rows of {shape} are in {len(eras)} eras; expected exactly one")
        deliveries = resolve_columns(eras[0], row_like, schema)
        if wrong := [one.problem for one in deliveries if one.problem]:
            raise ManifestTampered(f"input {pin.name}: column {wrong[0]}; the plan proved otherwise")
        found.setdefault(deliveries, []).append(shape)
    return found


def _is_shadow(name: str, schema: Mapping[str, str], pin: InputPin) -> bool:
    """Whether a column of a schema is the value before a change of another one."""
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    return pin.log.declared.reading == CHANGES and name.startswith(BEFORE) and name.removeprefix(BEFORE) in schema


def _build_reading_columns(declared: ChangeCapture) -> dict[str, Column]:
    time = F.timestamp_micros("time_us")
    if declared.reading == HISTORY:
        return {
            "valid_from": time,
            "valid_to": F.timestamp_micros(F.col("until")["time_us"]),
            "valid_from_position": F.col("at"),
            "valid_to_position": F.col("until")["at"],
        }
    return {
        "cdc_op": F.col("op"),
        "cdc_position": F.col("at"),
        "cdc_lsn": F.col("lsn"),
        "cdc_transaction": F.col("tx"),
        "cdc_time": time,
    }


def _decode(value: Column, kind: str, declared: ChangeCapture) -> Column:
    """The text of a value as a cast expects it; numbers that are no date or time stay as they are, and fail to cast."""
    is_number = value.rlike(_WHOLE_NUMBER)
    if kind == "date":
        days = F.when(is_number, value.try_cast("bigint"))
        dated = F.date_format(F.date_from_unix_date(F.when(days.between(*_DAYS), days).cast("int")), "yyyy-MM-dd")
        return F.coalesce(dated, F.regexp_replace(value, "Z$", ""))
    if kind in ("timestamp", "timestamptz"):
        number = F.when(is_number, value.try_cast("bigint"))
        factor = 1000 if declared.integer_times == "milliseconds" else 1
        within = F.when(number.between(_MICROS[0] // factor, _MICROS[1] // factor), number * F.lit(factor))
        zone = "'Z'" if kind == "timestamptz" else ""
        return F.coalesce(F.date_format(F.timestamp_micros(within), f"yyyy-MM-dd'T'HH:mm:ss.SSSSSS{zone}"), value)
    return value


def _place_rows(rows: DataFrame, pin: InputPin, kind: str, grain: Grain) -> DataFrame:
    """Put rows whose partition cannot be read into the first partition of the run, where they are quarantined.

    A truncate is about all partitions at once, and so in none.
    """
    column = str(pin.partition)
    is_truncate = F.lit(False)  # noqa: FBT003 - a literal
    if column in _list_row_names(pin) and "cdc_op" in pin.columns:
        is_truncate = F.col("cdc_op") == "t"
    is_stray = F.col(quoted(column)).isNull() & (F.col(CAST).isNotNull() | is_truncate)
    home = pin.input_partitions[min(pin.lookback, len(pin.input_partitions) - 1)]
    value = F.when(is_stray, typed_partition(F.lit(home), kind, grain)).otherwise(F.col(quoted(column)))
    why = F.coalesce(F.col(CAST), F.when(is_truncate, F.lit("truncate of every partition")))
    return rows.withColumns({CAST: why, column: value})


def _cut_since(rows: DataFrame, pin: InputPin, grain: Grain, kind: str, number: int) -> DataFrame:
    """Changes after the position of each partition's accepted run; of the state only partitions without one."""
    assert pin.log is not None  # noqa: S101 - only such inputs come here
    since = F.create_map(*(F.lit(one) for name, at in pin.log.since.items() for one in (name, int(at))))
    known = since[partition_text(str(pin.partition), kind, grain)]
    return rows.where(F.col("cdc_position") > known if number == 0 else known.isNull())
