"""The merge itself against a naive one in Python: many small partitions in one job, each a case of its own."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.compute.merge import find_merge_violation, mark_deletions, merge_rows
from errata.errors import OutputContract
from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.model.product import Merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, str | None, int | None, str]  # partition, key, version, value
Change = tuple[int, str | None, int | None, str, bool | None]
PIN = TargetPin(
    "lake.t", "u", "1", 0, 0, "p", "int", "identity", Grain.VALUE,
    {"p": "int", "k": "string", "v": "int", "x": "string"}, ("k",), "part", {}, 1,
)  # fmt: skip
PRIOR, CHANGES = "p int, k string, v int, x string", "p int, k string, v int, x string, gone boolean"
MERGE = Merge("v", "gone", "`gone`", ("gone",))


def naive(prior: list[Row], changes: list[Change], *, by_version: bool) -> list[Row]:
    """One partition, key by key, as one would explain it."""
    result = []
    for key in {row[1] for row in (*prior, *changes)}:
        old = [row for row in prior if row[1] == key]
        new = [row for row in changes if row[1] == key]
        if not new:
            result += old
            continue
        newest = max(new, key=lambda row: row[2] or 0) if by_version else new[0]
        if by_version and any(row[2] is not None and row[2] > (newest[2] or 0) for row in old):
            result += old
        elif not newest[4]:
            result.append(newest[:4])
    return result


def cases(count: int, *, by_version: bool) -> tuple[list[Row], list[Change]]:
    """Random partitions; of each key at most one change of a version, or one at all where there are no versions."""
    choose = random.Random(20261116)  # noqa: S311 - cases, not secrets
    prior: list[Row] = []
    changes: list[Change] = []
    for p in range(count):
        for key in "abcd":
            times = choose.choice([0, 1, 1, 1, 2])  # a key may be there twice
            prior += [(p, key, choose.choice([None, 1, 2, 3]), f"old{n}") for n in range(times)]
            versions = choose.sample([1, 2, 3], choose.choice([0, 1, 2])) if by_version else [7] * choose.choice([0, 1])
            changes += [(p, key, v, f"new{v}", choose.choice([True, False, False, None])) for v in versions]
        if choose.random() < 0.1:
            prior.append((p, None, 1, "no key"))
    choose.shuffle(prior)
    choose.shuffle(changes)
    return prior, changes


def run(spark: SparkSession, prior: list[Row], changes: list[Change], version: str | None = "v", **more: Any) -> Any:
    """What Spark makes of it."""
    rows, given = spark.createDataFrame(prior, PRIOR), mark_deletions(spark.createDataFrame(changes, CHANGES), MERGE)
    names = sorted({str(row[0]) for row in (*prior, *changes)})
    return merge_rows(rows, given.drop("gone"), PIN, version, more.pop("partitions", names), **more).collect()


@pytest.mark.parametrize("by_version", [True, False], ids=["by version", "without versions"])
def test_the_newest_row_of_a_key_stays_and_a_deletion_takes_it_out(spark: SparkSession, by_version: bool) -> None:
    """Older, equal, newer, deleted, absent, there twice, unversioned: 150 partitions agree with the naive merge."""
    prior, changes = cases(150, by_version=by_version)
    found = run(spark, prior, changes, "v" if by_version else None)
    expected = Counter(
        row
        for p in range(150)
        for row in naive([r for r in prior if r[0] == p], [c for c in changes if c[0] == p], by_version=by_version)
    )
    assert Counter(tuple(row) for row in found) == expected


def test_a_key_of_another_partition_is_another_row(spark: SparkSession) -> None:
    """The answer must not depend on how partitions were packed into chunks."""
    found = run(spark, [(1, "a", 5, "one"), (2, "a", 5, "two")], [(1, "a", 9, "new", None)])
    assert sorted(tuple(row) for row in found) == [(1, "a", 9, "new"), (2, "a", 5, "two")]


@pytest.mark.parametrize(
    "changes, said",
    [
        ([(1, "a", 2, "x", None), (1, "a", 2, "y", None)], "two changes of one key have the same version: k=a, p=1"),
        ([(1, None, 2, "x", None)], "a change has no key: k=NULL, p=1"),
        ([(1, "a", None, "x", None)], "a change has no v: k=a, p=1"),
        ([(2, "a", 1, "x", True)], "a deletion is of a partition outside the chunk: k=a, p=2"),
    ],
)
def test_what_has_no_single_answer_fails_and_names_a_key(spark: SparkSession, changes: list[Change], said: str) -> None:
    """Whichever row were taken would be a guess."""
    with pytest.raises(Exception, match="errata merge") as failed:
        run(spark, [(1, "a", 1, "old")], changes, partitions=["1"])
    told = find_merge_violation(failed.value, "chunk c1")
    assert isinstance(told, OutputContract)
    assert f"chunk c1: {said}" in told.message


def test_a_classified_key_is_masked_in_the_failure(spark: SparkSession) -> None:
    """The message goes into the ledger, the log and the terminal."""
    twice: list[Change] = [(1, "secret", 2, "x", None), (1, "secret", 2, "y", None)]
    with pytest.raises(Exception, match="errata merge") as failed:
        run(spark, [(1, "b", 1, "old")], twice, classified=("k",))
    told = find_merge_violation(failed.value, "chunk c1")
    assert told is not None
    assert "k=•••" in told.message
    assert "secret" not in str(failed.value)


def test_two_older_changes_of_one_version_do_no_harm(spark: SparkSession) -> None:
    """Neither of them stays, so nothing has to be guessed."""
    changes: list[Change] = [(1, "a", 2, "x", None), (1, "a", 2, "y", None), (1, "a", 3, "z", None)]
    assert [tuple(row) for row in run(spark, [], changes)] == [(1, "a", 3, "z")]
