"""Events are paired one to one, as many as possible and the nearest, whatever the order of rows."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.reconstruct.nearest import MOST_COMPARISONS, drop_paired
from support.rebuilding import START, find_unpaired

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Side = list[tuple[int, str]]
WITHIN = 3


def _drop(spark: SparkSession, cases: list[tuple[Side, Side]], tasks: int = 2) -> list[str]:
    """Ids of the events of the source that are left, of all cases at once: the number of a case is its key."""
    rows = [
        (str(n), START + timedelta(seconds=at), name, side)
        for n, case in enumerate(cases)
        for side in (0, 1)
        for at, name in case[side]
    ]
    random.Random(tasks).shuffle(rows)  # noqa: S311 - an order, not a secret
    frame = spark.createDataFrame(rows, "user string, ts timestamp, id string, side int").repartition(tasks)
    left = drop_paired(frame, F.col("side"), on=["user"], time=F.col("ts"), tie=F.col("id"), within=WITHIN)
    kept = left.select("id", "side").collect()
    assert sorted(row.id for row in kept if row.side == 0) == sorted(name for known, _ in cases for _, name in known)
    return sorted(row.id for row in kept if row.side == 1)


def test_the_pairing_is_the_best_of_all_pairings(spark: SparkSession) -> None:
    """600 random cases, with equal times among them, against trying every pairing."""
    chance = random.Random(41)  # noqa: S311 - a sample, not a secret
    cases = [
        tuple(
            [(chance.randrange(16), f"{side}{n}-{m}") for m in range(chance.randrange(5))] for side in ("known", "new")
        )
        for n in range(600)
    ]
    expected = sorted(name for known, new in cases for name in find_unpaired(known, new, WITHIN))
    assert _drop(spark, cases) == expected  # type: ignore[arg-type]
    assert _drop(spark, cases, tasks=5) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "known, new, left",
    [
        ([(0, "k0"), (4, "k1")], [(3, "n0"), (7, "n1")], []),
        ([(10, "k0")], [(7, "n0"), (10, "n1")], ["n0"]),
        ([(10, "k0")], [(9, "n0"), (11, "n1")], ["n1"]),
        ([(10, "k0")], [(10, "n0"), (10, "n1")], ["n1"]),
        ([(10, "k0"), (10, "k1")], [(10, "n0")], []),
        ([(0, "k0")], [(4, "n0")], ["n0"]),
        ([(0, "k0")], [(3, "n0")], []),
        ([], [(3, "n0")], ["n0"]),
    ],
    ids=["most-pairs-first", "nearest", "tie-of-times", "tie-of-ids", "one-to-one", "beyond", "limit", "alone"],
)
def test_small_pairings(spark: SparkSession, known: Side, new: Side, left: list[str]) -> None:
    """Each case is one sentence of the rule: see the ids."""
    assert find_unpaired(known, new, WITHIN) == left
    assert _drop(spark, [(known, new)]) == left


def test_a_long_chain_finds_as_many_pairs(spark: SparkSession) -> None:
    """A bot with more comparisons than the limit is paired earliest first; the number of pairs is the same."""
    at_once = int(MOST_COMPARISONS**0.5) + 5
    known: Side = [(n // 50, f"k{n:04d}") for n in range(at_once)]
    new: Side = [(n // 50, f"n{n:04d}") for n in range(at_once + 3)]
    assert len(_drop(spark, [(known, new)])) == 3


def test_events_without_a_key_or_time_are_kept(spark: SparkSession) -> None:
    """NULL is equal to nothing, so nothing explains them."""
    rows: list[Any] = [(None, START, "k", 0), (None, START, "n", 1), ("u", None, "k2", 0), ("u", None, "n2", 1)]
    frame = spark.createDataFrame(rows, "user string, ts timestamp, id string, side int")
    left = drop_paired(frame, F.col("side"), on=["user"], time=F.col("ts"), tie=F.col("id"), within=WITHIN)
    assert sorted(row.id for row in left.collect()) == ["k", "k2", "n", "n2"]
