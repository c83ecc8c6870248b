"""Rebuild events that were never recorded from other sources, by the rules of the product. Lazy: no UDF, no action.

All events go through the rules in one pool, in order of precedence, and a rule removes those of its source that an
event before it explains. Recorded events are in the pool only with the columns that rules compare; nothing ever removes
them. So every rule costs one shuffle of the pool, and no frame is computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.errors import TransformFailed
from errata.model.context import Context
from errata.model.product.reconstruction import (
    CONFIDENCE,
    ORIGIN,
    ORIGIN_COLUMNS,
    RULE,
    RULE_VERSION,
    RebuildRule,
    Reconstruction,
)
from errata.reconstruct.nearest import drop_paired

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE, _SEEN, _ROW, _FIRST, _BEST, _SOURCE = (
    f"__errata_{name}" for name in ("place", "seen", "row", "first", "best", "source")
)
CONFIDENCE_TYPE = "decimal(3,2)"
UNKNOWN = "no rule of reconstruct can identify this event"


def rebuild(ctx: Context, sources: Mapping[str, DataFrame]) -> DataFrame:
    """The events that the table has, and those that only the sources have, for the partitions of this call.

    ``sources`` has one frame of events for each source that a rule of the product names, with the columns of the target
    that the source knows, and its input's partition column. Events that the table has are returned as they are. Every
    other one has its source, rule and rule version in ``origin``, ``rule`` and ``rule_version``, and in ``confidence``
    that of its rule, or its own if the frame has the column and it is lower. Events that an earlier run rebuilt count
    as missing, so a second run gives the same rows, and a changed rule replaces what the old one added.

    Example: return reconstruct.rebuild(ctx, {"retry": retry, "api": to_events(api)})
    """
    rules = ctx.reconstruction
    if rules is None:
        raise TransformFailed(
            f"reconstruct.rebuild was refused; {ctx.product} has no rules",
            hint="declare reconstruct: in the product file",
        )
    recorded = ctx.recorded()
    _refuse_misfits(recorded, sources, rules)
    known = _select_compared(recorded, rules)
    pool = reduce(
        lambda left, right: left.unionByName(right),
        [_prepare_source(ctx, name, rows, recorded, rules) for name, rows in sources.items()],
        known,
    )
    for group in _group_rules(rules.rules):
        pool = _drop_identified(pool, group) if group[0][1].identity else _drop_nearest(pool, *group[0], rules)
    added = pool.where(F.col(_PLACE) > 0).select(f"{_ROW}.*")
    made: DataFrame = ctx.cut(recorded.unionByName(added))
    return made


def _refuse_misfits(recorded: DataFrame, sources: Mapping[str, DataFrame], rules: Reconstruction) -> None:
    """Refuse frames that lack a source or a column, before Spark does it in its own words."""
    wanted = {rule.source for rule in rules.rules}
    if wanted != set(sources):
        raise TransformFailed(
            f"reconstruct.rebuild was refused; expected the sources {', '.join(sorted(wanted))}, found "
            f"{', '.join(sorted(sources)) or 'none'}"
        )
    places = {"the table": (recorded, {rules.id, rules.time, *ORIGIN_COLUMNS, *_list_compared(rules)})}
    for rule in rules.rules:
        needed = {rules.time, *rule.identity, *_list_key(rule, rules)}
        places[f"rule {rule.name}: {rule.source}"] = (sources[rule.source], needed)
    for place, (frame, needed) in places.items():
        if missing := sorted(needed - set(frame.columns)):
            raise TransformFailed(
                f"reconstruct.rebuild was refused; {place} has no column {', '.join(missing)}, only "
                f"{', '.join(frame.columns)}"
            )


def _list_compared(rules: Reconstruction) -> list[str]:
    """Columns by which events are compared, without id and time."""
    used = [name for rule in rules.rules for name in (*rule.identity, *(rule.match.on if rule.match else ()))]
    return [name for name in dict.fromkeys(used) if name not in (rules.id, rules.time)]


def _list_key(rule: RebuildRule, rules: Reconstruction) -> tuple[str, ...]:
    """Columns that identify a row of the rule's source."""
    return rule.identity or rule.key or (*(rule.match.on if rule.match else ()), rules.time)


def _select_compared(recorded: DataFrame, rules: Reconstruction) -> DataFrame:
    """Recorded events as members of the pool."""
    return recorded.select(
        F.col(rules.id).cast("string").alias(rules.id),
        rules.time,
        *_list_compared(rules),
        F.lit(0).alias(_PLACE),
        F.array().cast("array<string>").alias(_SEEN),
        F.lit(None).cast(recorded.select(F.struct("*").alias(_ROW)).schema[_ROW].dataType).alias(_ROW),
    )


def _prepare_source(ctx: Context, name: str, rows: DataFrame, recorded: DataFrame, rules: Reconstruction) -> DataFrame:
    """Events of a source as members of the pool: each by the first rule that can identify it, once, and with an id."""
    mine = [(place, rule) for place, rule in enumerate(rules.rules, 1) if rule.source == name]
    place = F.lit(None).cast("int")
    for number, rule in reversed(mine):
        needed = {rules.time, *_list_key(rule, rules), *(rule.match.on if rule.match else ())}
        is_usable = reduce(lambda left, right: left & right, [F.col(one).isNotNull() for one in sorted(needed)])
        place = F.when(is_usable, number).otherwise(place)
    placed = rows.withColumn(_PLACE, place)
    placed = ctx.quarantine(placed, F.col(_PLACE).isNull(), UNKNOWN, of=name)
    parts = [
        _build_members(
            ctx, _keep_first(placed.where(F.col(_PLACE) == number), rule, rules), number, rule, recorded, rules
        )
        for number, rule in mine
    ]
    return reduce(lambda left, right: left.unionByName(right), parts)


def _keep_first(rows: DataFrame, rule: RebuildRule, rules: Reconstruction) -> DataFrame:
    """One row for each key of the source: the earliest, and of equal ones the one whose values sort first.

    Rows with an identity are compared with all others of it later, so they need no shuffle of their own.
    """
    if rule.identity:
        return rows
    others = [F.col(name).cast("string") for name in sorted(rows.columns) if name not in (rules.time, _PLACE)]
    first = Window.partitionBy(*_list_key(rule, rules)).orderBy(rules.time, *others)
    return rows.withColumn(_FIRST, F.row_number().over(first)).where(F.col(_FIRST) == 1).drop(_FIRST)


def _build_members(
    ctx: Context, rows: DataFrame, place: int, rule: RebuildRule, recorded: DataFrame, rules: Reconstruction
) -> DataFrame:
    named = rows.withColumn(_SOURCE, F.lit(rule.source))
    made = ctx.deterministic_id(_SOURCE, *_list_key(rule, rules))
    given = F.col(rules.id).cast("string") if rule.identity and rules.id in rows.columns else F.lit(None)
    own = F.col(CONFIDENCE) if CONFIDENCE in rows.columns else F.lit(None)
    told = {
        rules.id: F.coalesce(given, made),
        ORIGIN: F.lit(rule.source),
        RULE: F.lit(rule.name),
        RULE_VERSION: F.lit(rule.version),
        CONFIDENCE: F.least(F.lit(rule.confidence).cast(CONFIDENCE_TYPE), own.cast(CONFIDENCE_TYPE)),
    }
    types = {field.name: field.dataType for field in recorded.schema.fields}
    values = {
        name: told.get(name, F.col(name) if name in rows.columns else F.lit(None)).cast(kind)
        for name, kind in types.items()
    }
    shaped = named.select(F.struct(*[value.alias(name) for name, value in values.items()]).alias(_ROW))
    return shaped.select(
        F.col(_ROW)[rules.id].cast("string").alias(rules.id),
        F.col(_ROW)[rules.time].alias(rules.time),
        *[F.col(_ROW)[name].alias(name) for name in _list_compared(rules)],
        F.lit(place).alias(_PLACE),
        F.array().cast("array<string>").alias(_SEEN),
        _ROW,
    )


def _group_rules(rules: Sequence[RebuildRule]) -> list[list[tuple[int, RebuildRule]]]:
    """Rules with their places; those in a row with the same identity share a shuffle."""
    found: list[list[tuple[int, RebuildRule]]] = []
    for place, rule in enumerate(rules, 1):
        if found and rule.identity and found[-1][-1][1].identity == rule.identity:
            found[-1].append((place, rule))
        else:
            found.append([(place, rule)])
    return found


def _drop_identified(pool: DataFrame, group: Sequence[tuple[int, RebuildRule]]) -> DataFrame:
    """The pool without the events of these rules that a recorded event or a source before them has by identity."""
    identity, last = group[0][1].identity, group[-1][0]
    is_usable = F.col(_PLACE) <= last
    for name in identity:
        is_usable = is_usable & F.col(name).isNotNull()
    ids = [name for name in pool.columns if name not in (_PLACE, _SEEN, _ROW)]
    # events without an identity are alone in their group, so that they do not meet in one task
    alone = F.when(~is_usable, F.xxhash64(*ids))
    same = Window.partitionBy(*identity, alone)
    in_order = same.orderBy(_PLACE, *ids, F.to_json(F.col(_ROW)))
    sources = {place: rule.source for place, rule in group}
    source = F.element_at(F.create_map(*[F.lit(one) for item in sources.items() for one in item]), F.col(_PLACE))
    marked = pool.select(
        *ids,
        _PLACE,
        _ROW,
        F.array_union(F.col(_SEEN), F.when(is_usable, F.collect_set(source).over(same)).otherwise(F.col(_SEEN))).alias(
            _SEEN
        ),
        F.min(_PLACE).over(same).alias(_BEST),
        F.row_number().over(in_order).alias(_FIRST),
    )
    is_kept = ~F.col(_PLACE).isin(list(sources)) | ((F.col(_PLACE) == F.col(_BEST)) & (F.col(_FIRST) == 1))
    return marked.where(is_kept).drop(_BEST, _FIRST)


def _drop_nearest(pool: DataFrame, place: int, rule: RebuildRule, rules: Reconstruction) -> DataFrame:
    """The pool without the events of this rule that pair with one before it.

    An event that the source itself has by identity explains no other event of that source.
    """
    match = rule.match
    assert match is not None  # noqa: S101 - a rule without an identity has a match
    is_known = (F.col(_PLACE) < place) & ~F.array_contains(_SEEN, rule.source)
    side = F.when(F.col(_PLACE) == place, 1).when(is_known, 0)
    return drop_paired(pool, side, on=match.on, time=F.col(rules.time), tie=F.col(rules.id), within=match.within)
