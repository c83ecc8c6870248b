"""Pair events one to one by key and time. Lazy: one shuffle by key, no UDF, no action.

Within a key, known events and events of the source are paired so that as many as possible have a partner: an event
without one is added to the table, and adding an event that another pairing explains would count it twice. Of all such
pairings, the one with the least sum of time differences is taken, which is what "nearest" means here; of equal ones,
the one that pairs earlier events of the source, then earlier known events.

On a line, one of the best pairings has no crossing pairs, so it is found by dynamic programming over both sides in
the order of time. Events further apart than the limit never meet: a key is first cut into chains at every gap above
the limit, and within a chain an event is compared only with those within the limit. No person makes a chain with more
than :data:`MOST_COMPARISONS`. There, each known event takes the earliest event of the source that is within the limit,
which finds as many pairs, but not the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_AT, _TIE, _ROW, _SIDE, _ALONE, _CHAIN, _KNOWN, _NEW, _REST, _MARKS = (
    f"__errata_{name}" for name in ("at", "tie", "row", "side", "alone", "chain", "known", "new", "rest", "marks")
)
_MICROS = 1_000_000
MOST_COMPARISONS = 10_000
"""Comparisons of times in one chain up to which the nearest pairs are found."""


def drop_paired(
    events: DataFrame, side: Column, *, on: Sequence[str], time: Column, tie: Column, within: int
) -> DataFrame:
    """The events without those of the source that a known event explains; ``within`` is in seconds.

    ``side`` is 0 for a known event and 1 for one of the source. Events without a side, without a time or with a NULL
    in ``on`` pair with nothing and are kept. ``tie`` orders events of the same time and is unique, so that the result
    does not depend on the order of rows.
    """
    whole = F.struct(*[F.col(name) for name in events.columns]).alias(_ROW)
    is_usable = side.isNotNull() & time.isNotNull()
    for name in on:
        is_usable = is_usable & F.col(name).isNotNull()
    # events that pair with nothing are alone in their group, so that they do not meet in one task
    alone = F.when(~is_usable, tie).alias(_ALONE)
    at = F.unix_micros(time.cast("timestamp")).alias(_AT)
    pool = events.select(*on, whole, alone, at, tie.alias(_TIE), F.when(is_usable, side).alias(_SIDE))
    in_time = Window.partitionBy(*on, _ALONE).orderBy(_AT, _SIDE, _TIE)
    is_gap = F.coalesce(F.col(_AT) - F.lag(_AT).over(in_time) > within * _MICROS, F.lit(False))  # noqa: FBT003
    chains = pool.withColumn(_CHAIN, is_gap.cast("long")).withColumn(_CHAIN, F.sum(_CHAIN).over(in_time))
    # the shuffle by key serves both the window and the groups
    sides = chains.groupBy(*on, _ALONE, _CHAIN).agg(
        _collect(F.col(_SIDE) == 0).alias(_KNOWN),
        _collect(F.col(_SIDE) == 1).alias(_NEW),
        F.collect_list(F.when(F.col(_SIDE).isNull(), F.col(_ROW))).alias(_REST),
    )
    marked = sides.withColumn(_MARKS, _mark_lone(within * _MICROS))
    lone = F.filter(_NEW, lambda _one, n: F.substr(F.col(_MARKS), n + 1, F.lit(1)) == _LONE_MARK)
    kept = F.concat(_REST, F.transform(F.concat(F.col(_KNOWN), lone), lambda one: one[_ROW]))
    return marked.select(F.explode(kept).alias(_ROW)).select(f"{_ROW}.*")


_PAIRED_MARK, _LONE_MARK = "0", "1"  # in this order, because a smaller text is the better one


def _collect(condition: Column) -> Column:
    """The events of one side, in the order of time and id; the order in which rows arrive is not known."""

    def compare(one: Column, other: Column) -> Column:
        by_time = F.signum(one[_AT] - other[_AT]).cast("int")
        by_id = F.when(one[_TIE] < other[_TIE], -1).when(one[_TIE] > other[_TIE], 1).otherwise(0)
        return F.when(by_time != 0, by_time).otherwise(by_id)

    return F.array_sort(F.collect_list(F.when(condition, F.struct(_AT, _TIE, _ROW))), compare)


def _mark_lone(within: int) -> Column:
    """One mark for each event of the source, in order: paired or not."""
    new = F.col(_NEW)
    # for each known event: how many of the source are before its reach, and how many are before the end of it
    reach = F.transform(
        F.col(_KNOWN),
        lambda one: F.struct(
            one[_AT].alias(_AT),
            _count_before(new, one[_AT] - within).alias("low"),
            _count_before(new, one[_AT] + within + 1).alias("high"),
        ),
    )
    work = F.aggregate(reach, F.lit(0).cast("long"), lambda total, one: total + one["high"] - one["low"])
    return (
        F.when(work == 0, F.repeat(F.lit(_LONE_MARK), F.size(new)))
        .when(work <= MOST_COMPARISONS, _pair_nearest(reach, new))
        .otherwise(_pair_earliest(reach, new))
    )


def _count_before(new: Column, instant: Column) -> Column:
    return F.size(F.filter(new, lambda other: other[_AT] < instant))


def _pair_earliest(reach: Column, new: Column) -> Column:
    """Every known event takes the earliest that is left within its reach."""
    start = F.struct(F.lit(0).alias("next"), F.lit("").alias("marks"))

    def take(taken: Column, one: Column) -> Column:
        first = F.greatest(taken["next"], one["low"])
        passed = F.concat(taken["marks"], F.repeat(F.lit(_LONE_MARK), first - taken["next"]))
        pair = F.struct((first + 1).alias("next"), F.concat(passed, F.lit(_PAIRED_MARK)).alias("marks"))
        return F.when(first < one["high"], pair).otherwise(F.struct(first.alias("next"), passed.alias("marks")))

    return F.rpad(F.aggregate(reach, start, take)["marks"], F.size(new), _LONE_MARK)


def _pair_nearest(reach: Column, new: Column) -> Column:
    """The best pairing.

    A cell of the table is the best pairing of the first i known events and the first j of the source, as a structure
    whose order is the rule: minus the number of pairs, the sum of the differences, the marks of the source, the marks
    of the known events. The smallest is the best, and adding the same marks to two cells does not change which is
    smaller, so every cell follows from its three neighbours. A row holds only the cells from ``low`` to ``high``:
    before them nothing can be paired any more, and after them nothing yet.
    """
    nothing = _cell(F.lit(0), F.lit(0).cast("long"), F.lit(""), F.lit(""))
    start = F.struct(F.lit(0).alias("low"), F.lit(0).alias("high"), F.array(nothing).alias("cells"))
    last = F.aggregate(reach, start, lambda above, one: _next_row(above, one, new))
    return F.rpad(F.element_at(last["cells"], -1)["new"], F.size(new), _LONE_MARK)


def _next_row(above: Column, one: Column, new: Column) -> Column:
    """The row of a known event, from the row of the one before it; it grows from left to right."""
    low, high = one["low"], one["high"]
    last = F.element_at(above["cells"], -1)
    missing = high - above["high"]
    further = F.when(
        missing > 0,
        F.transform(F.sequence(F.lit(1), missing), lambda n: _extend(last, new=F.repeat(F.lit(_LONE_MARK), n))),
    ).otherwise(F.slice(above["cells"], 1, 0))
    held = F.slice(F.concat(above["cells"], further), low - above["low"] + 1, high - low + 1)

    def build(cells: Column) -> Column:
        first = F.array(_extend(F.element_at(cells, 1), known=F.lit(_LONE_MARK)))

        def add(row: Column, n: Column) -> Column:
            apart = F.abs(one[_AT] - F.element_at(new, low + n)[_AT])
            lone = F.least(
                _extend(F.element_at(cells, n + 1), known=F.lit(_LONE_MARK)),
                _extend(F.element_at(row, -1), new=F.lit(_LONE_MARK)),
            )
            # within the reach of the known event by the choice of low and high
            return F.concat(row, F.array(F.least(_pair(F.element_at(cells, n), apart), lone)))

        places = F.when(high > low, F.sequence(F.lit(1), high - low)).otherwise(F.array().cast("array<int>"))
        return F.aggregate(places, first, add)

    # a list of one, so that the cells above are computed once
    cells = F.element_at(F.transform(F.array(held), build), 1)
    return F.struct(low.alias("low"), high.alias("high"), cells.alias("cells"))


def _cell(pairs: Column, apart: Column, new: Column, known: Column) -> Column:
    return F.struct(
        pairs.cast("int").alias("pairs"), apart.cast("long").alias("apart"), new.alias("new"), known.alias("known")
    )


def _extend(cell: Column, *, new: Column | None = None, known: Column | None = None) -> Column:
    return _cell(
        cell["pairs"],
        cell["apart"],
        cell["new"] if new is None else F.concat(cell["new"], new),
        cell["known"] if known is None else F.concat(cell["known"], known),
    )


def _pair(cell: Column, apart: Column) -> Column:
    mark = F.lit(_PAIRED_MARK)
    return _cell(cell["pairs"] - 1, cell["apart"] + apart, F.concat(cell["new"], mark), F.concat(cell["known"], mark))
