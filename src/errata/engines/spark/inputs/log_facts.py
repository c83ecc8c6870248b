"""Find out what a change log holds: positions, snapshots, holes, shapes. Collects aggregates only.

Two passes over the messages: the first tells which positions there are, the second looks at the part of the log that is
chosen by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import Clusters
from errata.engines.spark.inputs.change_messages import (
    UNAVAILABLE,
    MessagePlace,
    normalize_changes,
    parse_messages,
    read_commits,
    read_messages,
)
from errata.engines.spark.inputs.log_offsets import read_ends, read_offsets, read_partitions, read_row
from errata.errors import EngineError
from errata.model.change_log.declaration import CHANGES, ChangeCapture, list_row_columns
from errata.model.change_log.log_contents import (
    LogFacts,
    LogReset,
    LogSpan,
    Sample,
    SnapshotMark,
    SpanFacts,
)
from errata.model.change_log.log_pin import LogState
from errata.model.change_log.log_positions import choose_span, parse_position, to_micros
from errata.model.kafka.topic_range import TopicPin, merge_ranges
from errata.model.manifest import InputPin
from errata.model.product import Input
from errata.ports.change_logs import ChangeLogReader
from errata.ports.tables import InputState

_MOST = 1000
"""Most snapshots, truncates, shapes or fresh starts of one log; more is no log of one table."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class SparkChangeLogs:
    """Reads change logs with Spark."""

    session: Callable[[], SparkSession]
    clusters: Clusters

    def read_log(self, source: Input, changes: InputState, ends: InputState, since: Mapping[str, int],
                 lacks_since: Sequence[str]) -> LogState:  # fmt: skip
        """See the port."""
        session = self.session()
        messages = parse_messages(read_messages(session, _find_place(source, changes), self.clusters))
        marks = parse_messages(read_messages(session, _find_place(source, ends), self.clusters))
        return examine_log(source, LogMessages(messages, marks, changes, ends), since, lacks_since)


@dataclass(frozen=True, slots=True)
class LogMessages:
    """Parsed messages of a change log, and of the ends of its transactions, with the states of their places."""

    changes: DataFrame
    marks: DataFrame
    changes_state: InputState
    ends_state: InputState


def examine_log(source: Input, messages: LogMessages, since: Mapping[str, int], lacks_since: Sequence[str]) -> LogState:
    """What the messages hold, and which part of the log the input means."""
    assert source.cdc is not None  # noqa: S101 - only such inputs come here
    declared = source.cdc
    commits = read_commits(messages.marks, declared.source_table or _find_table(messages.changes)).persist()
    # kept by the executors, in memory or on disk, because every aggregate needs it
    normal = normalize_changes(messages.changes, commits, declared).persist()
    try:
        facts = _read_facts(declared, messages, commits, normal)
        state = LogState(facts, since=dict(since), lacks_since=tuple(lacks_since))
        span = choose_span(declared, facts, state.begins_with)
        if span is None:
            return state
        return replace(state, span=span, held=_read_span(source, facts, span, commits, normal))
    finally:
        normal.unpersist()
        commits.unpersist()


def _find_place(source: Input, state: InputState) -> MessagePlace:
    if state.topic is not None:
        ranges = merge_ranges((state.offsets or {}).values())
        assert source.kafka is not None  # noqa: S101 - both topics are of one cluster
        topic = state.location.rpartition("/")[2]
        declared = replace(source.kafka, topic=topic)
        pin = TopicPin(declared, state.topic.topic_id, len(state.topic.logs), state.topic.clock, ranges)
        return MessagePlace(state.location, topic=pin, ranges=ranges)
    if state.kind == "table":
        return MessagePlace(state.location, table=state.location, snapshot_id=state.snapshot_id)
    files = {file.path: file for listed in (state.files or {}).values() for file in listed}
    return MessagePlace(state.location, files=tuple(files[path] for path in sorted(files)), pin=_name_pin(state))


def _name_pin(state: InputState) -> InputPin:
    """A pin that names the input in errors of reading."""
    return InputPin(state.name, "files", state.location, None, None, 0, 0, (), {}, 0, 0, 0)


def _find_table(messages: DataFrame) -> str | None:
    """The one table whose changes these are; None if there are several, which is refused."""
    name = F.concat_ws(".", F.col("m.source.schema"), F.col("m.source.table"))
    rows = messages.where(F.col("m.op").isNotNull()).select(name.alias("t")).distinct().limit(2).collect()
    return str(rows[0]["t"]) if len(rows) == 1 else None


def _read_facts(declared: ChangeCapture, log: LogMessages, commits: DataFrame, normal: DataFrame) -> LogFacts:
    snapshots = _read_snapshots(normal, commits)
    keyless = (F.col("op") != "t") & F.exists("key", lambda one: one.isNull())
    found = read_row(
        normal.agg(
            F.count_if(keyless).alias("keyless"),
            F.min(F.when(keyless, F.col("origin"))).alias("lacks"),
            F.max("time_us").alias("newest"),
        )
    )
    offsets = read_offsets(log.changes)
    sources, truncates, fresh = _read_marks(normal)
    return LogFacts(
        ends=read_ends(log.marks, commits, log.ends_state),
        snapshots=snapshots,
        truncates=truncates,
        partitions=read_partitions(offsets, normal, log.changes_state),
        sources=sources,
        fresh=fresh,
        unreadable=Sample(
            sum(int(one["bad"]) for one in offsets),
            min((one["bad_first"] for one in offsets if one["bad"]), default=""),
        ),
        keyless=Sample(int(found["keyless"]), str(found["lacks"] or "")),
        first_after=_find_first_after(declared, commits, normal),
        newest_us=int(found["newest"] or 0),
    )


def _read_marks(normal: DataFrame) -> tuple[tuple[str, ...], tuple[LogReset, ...], tuple[int, ...]]:
    """What changes name besides rows, each once: tables, truncates, and commits of a connector that started again."""

    nothing = F.lit(None).cast("bigint")

    def mark(kind: str, text: Column, at: Column, lsn: Column, time_us: Column) -> Column:
        fields = {"kind": F.lit(kind), "text": text, "at": at, "lsn": lsn, "time_us": time_us}
        return F.struct(*(value.alias(name) for name, value in fields.items()))

    at, is_known, none = F.col("at"), F.col("at").isNotNull(), F.lit("")
    marks = F.array(
        mark("source", F.concat_ws("/", "source", "source_table"), nothing, nothing, nothing),
        F.when(is_known & (F.col("op") == "t"), mark("truncate", none, at, F.col("lsn"), F.col("time_us"))),
        F.when(is_known & F.col("is_fresh"), mark("fresh", none, at, nothing, nothing)),
    )
    rows = normal.select(F.explode(F.array_compact(marks)).alias("mark")).select("mark.*").distinct()
    found = rows.limit(_MOST + 1).collect()
    _refuse_many(found)
    resets = [LogReset(one["at"], one["lsn"], one["time_us"], "truncate") for one in found if one["kind"] == "truncate"]
    return (
        tuple(sorted(one["text"] for one in found if one["kind"] == "source")),
        tuple(sorted(resets, key=lambda one: (one.at, one.lsn))),
        tuple(sorted(one["at"] for one in found if one["kind"] == "fresh")),
    )


def _find_first_after(declared: ChangeCapture, commits: DataFrame, normal: DataFrame) -> int | None:
    """The first commit later than the asked instant; changes have its time in microseconds, ENDs in milliseconds."""
    asked = parse_position(declared.at)
    if not isinstance(asked, datetime):
        return None
    limit = F.lit(to_micros(asked))
    by_change = read_row(normal.where((F.col("op") != "r") & (F.col("time_us") > limit)).agg(F.min("at").alias("at")))
    by_end = read_row(commits.where(F.col("ts_ms") * F.lit(1000) > limit).agg(F.min("at").alias("at")))
    return min((one["at"] for one in (by_change, by_end) if one["at"] is not None), default=None)


def _refuse_many(*lists: Sequence[Any]) -> None:
    if any(len(one) > _MOST for one in lists):
        raise EngineError(f"the change log has more than {_MOST:,} snapshots, truncates or new starts of its connector")


def _read_snapshots(normal: DataFrame, commits: DataFrame) -> tuple[SnapshotMark, ...]:
    rows = normal.where("op = 'r'").withColumn("is_part", F.col("snapshot") == "incremental")
    by = F.when(F.col("is_part"), F.lit(None)).otherwise(F.col("lsn"))
    grouped = rows.groupBy("is_part", by.alias("group")).agg(
        F.min("lsn").alias("at"),
        F.max("lsn").alias("last_at"),
        F.count_distinct("key").alias("rows"),
        F.max(F.col("snapshot").startswith("first")).alias("first"),
        F.max(F.col("snapshot").startswith("last")).alias("last"),
        F.max("time_us").alias("time_us"),
    )
    found = grouped.limit(_MOST + 1).collect()
    starts = sorted({int(one["at"]) for one in found if not one["is_part"]})
    known = _find_last_before(commits, "at", starts, F.lit(True))  # noqa: FBT003 - a literal
    return tuple(
        SnapshotMark(
            at=int(one["at"]),
            rows=int(one["rows"]),
            has_first=bool(one["first"]),
            has_last=bool(one["last"]),
            kind="incremental" if one["is_part"] else "initial",
            last_at=int(one["last_at"]),
            time_us=int(one["time_us"] or 0),
            known_until=known.get(int(one["at"]), 0),
        )
        for one in sorted(found, key=lambda one: one["at"])
    )


def _find_last_before(rows: DataFrame, column: str, starts: Sequence[int], only: Column) -> dict[int, int]:
    """For each of some positions, the greatest value of a column that is not above it."""
    if not starts:
        return {}
    named = [
        F.max(F.when(only & (F.col(column) <= F.lit(start)), F.col(column))).alias(f"p{n}")
        for n, start in enumerate(starts)
    ]
    found = read_row(rows.agg(*named))
    return {start: int(found[f"p{n}"] or 0) for n, start in enumerate(starts)}


def _read_span(
    source: Input, facts: LogFacts, span: LogSpan, commits: DataFrame, normal: DataFrame
) -> SpanFacts:  # fmt: skip
    assert source.cdc is not None  # noqa: S101 - only such inputs come here
    inside = normal.where((F.col("at") >= F.lit(span.base)) & (F.col("at") <= F.lit(span.position)))
    rows = list_row_columns(source.cdc, source.columns)
    shapes = (
        inside.where("row IS NOT NULL").select(F.array_sort(F.map_keys("row")).alias("s")).distinct().limit(_MOST + 1)
    )
    found = [tuple(one["s"]) for one in shapes.collect()]
    _refuse_many(found)
    is_unknown = {name: F.max(F.col("row")[name].isin(*UNAVAILABLE)) for name in rows}
    starts = [start for start in facts.fresh if span.base < start <= span.position]
    blind = _is_blind(source, rows)
    total = read_row(
        inside.agg(
            F.count(F.lit(1)).alias("n"),
            F.count_if(blind).alias("blind"),
            F.min(F.when(blind, F.col("origin"))).alias("blind_first"),
            *(column.alias(f"__lacks_{name}") for name, column in is_unknown.items()),
        )
    )
    is_old = (F.col("op") != "r") & ~F.col("is_fresh")
    before = _find_last_before(normal.where(F.col("at").isNotNull()), "at", [one - 1 for one in starts], is_old)
    opened, names = _read_open(facts, span, normal)
    return SpanFacts(
        open=opened,
        open_names=names,
        short=_read_short(span, commits, inside),
        shapes=tuple(sorted(found)),
        unavailable=tuple(name for name in rows if total[f"__lacks_{name}"]),
        blind=Sample(int(total["blind"]), str(total["blind_first"] or "")),
        stale_before={one: before.get(one - 1, 0) for one in starts},
        changes=int(total["n"]),
    )


def _is_blind(source: Input, rows: Mapping[str, str]) -> Column:
    """Whether a change does not tell the partition that its row was in before."""
    assert source.cdc is not None  # noqa: S101 - only such inputs come here
    column = source.partition
    if source.cdc.reading != CHANGES or column not in rows or column in source.cdc.key:
        return F.lit(False)  # noqa: FBT003 - a literal
    return F.col("op").isin("u", "d") & F.col("before")[column].isNull()


def _read_open(facts: LogFacts, span: LogSpan, normal: DataFrame) -> tuple[Sample, tuple[str, ...]]:
    """Transactions that wrote up to the position, and whose END is not in the range."""
    known_from = facts.ends.first if facts.ends.first is not None else span.base
    is_open = F.col("at").isNull() & (F.col("lsn") <= F.lit(span.position)) & (F.col("lsn") >= F.lit(known_from))
    names = normal.where(is_open & (F.col("op") != "r")).select("tx").distinct()
    count = names.count()
    first = [str(one["tx"]) for one in names.orderBy("tx").limit(_NAMED).collect()] if count else []
    return Sample(count, first[0] if first else ""), tuple(first)


def _read_short(span: LogSpan, commits: DataFrame, inside: DataFrame) -> Sample:
    """Transactions with fewer changes than their END counts; the count of a connector that started again is lower."""
    is_inside = (F.col("at") > F.lit(span.base)) & (F.col("at") <= F.lit(span.position))
    key = F.coalesce("key", F.array().cast("array<string>"))
    seen = inside.where("op <> 'r'").groupBy("tx", "at").agg(F.count_distinct("lsn", "op", key).alias("seen"))
    few = commits.where(is_inside & (F.col("count") > 0)).join(seen, ["tx", "at"], "left")
    few = few.withColumn("seen", F.coalesce("seen", F.lit(0))).where("seen < count")
    told = F.format_string("%d (%d of %d)", F.col("tx"), F.col("seen"), F.col("count"))
    found = read_row(few.agg(F.count(F.lit(1)).alias("n"), F.min(told).alias("first")))
    return Sample(int(found["n"]), str(found["first"] or ""))


_conforms: type[ChangeLogReader] = SparkChangeLogs
