"""Events that were never recorded are rebuilt by rules: precedence, identities, ids, and what the table already has."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from errata import reconstruct
from errata.engines.spark.compute.lineage_columns import deterministic_id
from errata.engines.spark.inputs.row_rules import split_rows
from errata.errors import TransformFailed
from errata.model.context import Context, Mode
from errata.model.product.reconstruction import Match, RebuildRule, Reconstruction
from errata.reconstruct.rebuild import UNKNOWN
from support.rebuilding import START, Event, rebuild_by_hand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = (
    "event_id string, ts timestamp, user_id string, action string, object_id string, name string, "
    "origin string, rule string, rule_version string, confidence decimal(3,2)"
)
SOURCE = (
    "event_id string, ts timestamp, user_id string, action string, object_id string, name string, "
    "request string, confidence decimal(3,2)"
)
ON = Match(("user_id", "action", "object_id"), 3)
RULES = Reconstruction(
    id="event_id",
    time="ts",
    rules=(
        RebuildRule("retry-buffer", "1", "retry", identity=("event_id",)),
        RebuildRule("api-by-id", "1", "api", identity=("event_id",), confidence="0.95"),
        RebuildRule("api-nearest", "2", "api", match=ON, key=("request",), confidence="0.8"),
        RebuildRule("order-log", "1", "orders", match=ON, confidence="0.6"),
    ),
)


def _event(second: float, name: str, event_id: str | None = None, user: str | None = "u1", **more: Any) -> Event:
    at = None if second < 0 else START + timedelta(seconds=second)
    return {"event_id": event_id, "ts": at, "user_id": user, "action": "view", "object_id": "p1", "name": name,
            "request": name, **more}  # fmt: skip


class Case:
    """Recorded events and sources as frames, in a context as a run gives it."""

    def __init__(self, spark: SparkSession, rules: Reconstruction = RULES) -> None:
        self.spark, self.rules = spark, rules
        self.aside: list[tuple[DataFrame, str]] = []

    def rows(self, events: Sequence[Event], schema: str) -> DataFrame:
        names = [part.split()[0] for part in schema.split(", ")]
        made = [tuple(event.get(name) for name in names) for event in events]
        random.Random(len(made)).shuffle(made)  # noqa: S311 - an order, not a secret
        return self.spark.createDataFrame(made, schema).coalesce(1)

    def rebuild(self, recorded: Sequence[Event], **sources: Sequence[Event]) -> list[dict[str, Any]]:
        table = self.rows(recorded, TABLE)
        context = Context(
            "run", "raw.events", Mode.BACKFILL, START, (), None, None, {}, "1",
            _deterministic_id=deterministic_id,
            _quarantine=partial(split_rows, lambda rows, why: self.aside.append((rows, why))),
            reconstruction=self.rules,
            _recorded=lambda: table,
            _cut=lambda frame: frame,
        )  # fmt: skip
        frames = {name: self.rows(events, SOURCE) for name, events in sources.items()}
        return [row.asDict() for row in reconstruct.rebuild(context, frames).collect()]


def _told(rows: Sequence[dict[str, Any]]) -> list[tuple[str | None, ...]]:
    return sorted(((row["origin"], row["rule"], row["name"]) for row in rows), key=str)


RECORDED = [
    _event(0, "live", "e1", "all"),
    _event(11, "late", "e2", "late"),
    _event(0, "live-by-id", "e3", "own"),
]
SOURCES: dict[str, list[Event]] = {
    "retry": [_event(0, "r1", "e1", "all"), _event(100, "r2", "e4", "all"), _event(100, "r2", "e4", "all")],
    "api": [
        *(_event(at, name, user="all") for at, name in ((1, "a1"), (101, "a2"), (200, "a3"))),
        _event(300, "a4", "e5", "all"),
        _event(10, "a-late", user="late"),
        _event(0, "a-by-id", "e3", "own"),
        _event(1, "a-beside", user="own"),
        _event(1, "sure", user="sure", confidence=Decimal("0.99")),
        _event(1, "guess", user="guess", confidence=Decimal("0.30")),
        _event(1, "twice", user="twice"),
        _event(1, "twice", user="twice"),
        _event(1, "no-user", user=None),
        _event(-1, "no-time"),
    ],
    "orders": [_event(at, name, user="all") for at, name in ((2, "o1"), (99, "o2"), (201, "o3"), (400, "o4"))],
}
"""One user for each rule: their events never meet."""


@pytest.fixture(scope="module")
def case(base_spark: SparkSession) -> Case:
    return Case(base_spark)


@pytest.fixture(scope="module")
def rebuilt(case: Case) -> list[dict[str, Any]]:
    return case.rebuild(RECORDED, **SOURCES)


def _of(rows: Sequence[dict[str, Any]], user: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["user_id"] == user]


def test_random_histories_are_rebuilt_as_by_hand(case: Case) -> None:
    """120 users with random events in all sources, with repeats, missing ids and close times."""
    chance = random.Random(7)  # noqa: S311 - a sample, not a secret
    sides: dict[str, list[Event]] = {"recorded": [], "retry": [], "api": [], "orders": []}
    for user in range(120):
        # times differ, so that names decide nothing; the order of equal times has its own test
        moments = chance.sample(range(0, 14_000, 50), 16)
        for side, events in sides.items():
            taken = chance.sample(range(4), 4)
            for n in range(chance.randrange(4)):
                given = f"{user}-{taken[n]}" if side == "retry" or chance.random() < 0.5 else None
                named = f"{side}-{user}-{n}"
                if side == "recorded" and given is None:
                    given = named
                events.append(_event(moments.pop() / 1000, named, given, f"u{user}"))
    expected = rebuild_by_hand(sides["recorded"], {name: sides[name] for name in SOURCES}, RULES)
    assert _told(case.rebuild(**sides)) == expected  # type: ignore[arg-type]


def test_what_the_table_has_wins_and_sources_follow_in_order(rebuilt: list[dict[str, Any]]) -> None:
    """One event that all four know is recorded; the next best source adds what is missing, with its rule."""
    rows = _of(rebuilt, "all")
    assert _told(rows) == [
        ("api", "api-by-id", "a4"),
        ("api", "api-nearest", "a3"),
        ("orders", "order-log", "o4"),
        ("retry", "retry-buffer", "r2"),
        (None, None, "live"),
    ]
    by_name = {row["name"]: row for row in rows}
    assert (by_name["live"]["confidence"], by_name["live"]["rule_version"]) == (None, None)
    assert (by_name["a3"]["confidence"], by_name["a3"]["rule_version"]) == (Decimal("0.80"), "2")
    assert by_name["r2"]["event_id"] == "e4"


def test_an_event_that_arrived_late_takes_the_place_of_a_rebuilt_one(rebuilt: list[dict[str, Any]]) -> None:
    """The live job appended the real event after all: the next run has it once."""
    assert _told(_of(rebuilt, "late")) == [(None, None, "late")]


def test_a_source_explains_its_own_identified_event_only_once(rebuilt: list[dict[str, Any]]) -> None:
    """The API log has an event by id and another one beside it without: they are two events, not one."""
    assert _told(_of(rebuilt, "own")) == [("api", "api-nearest", "a-beside"), (None, None, "live-by-id")]


def test_a_row_that_a_source_has_twice_is_one_event(rebuilt: list[dict[str, Any]]) -> None:
    """By the key of the source, however often a file was delivered."""
    assert len(_of(rebuilt, "twice")) == 1
    assert len({row["event_id"] for row in rebuilt}) == len(rebuilt)


def test_the_confidence_of_a_row_can_be_lower_than_that_of_its_rule(rebuilt: list[dict[str, Any]]) -> None:
    """A transform that had to guess says so; nobody is surer than the rule."""
    assert [_of(rebuilt, user)[0]["confidence"] for user in ("guess", "sure")] == [Decimal("0.30"), Decimal("0.80")]


def test_an_event_that_nothing_identifies_is_set_aside(case: Case, rebuilt: list[dict[str, Any]]) -> None:
    """Adding it could count it twice, and dropping it would hide it."""
    assert not {"no-user", "no-time"} & {row["name"] for row in rebuilt}
    names = {row.name for frame, _ in case.aside for row in frame.collect()}
    assert (names, {why for _, why in case.aside}) == ({"no-user", "no-time"}, {UNKNOWN})


def test_a_second_run_over_its_own_output_gives_the_same_rows(case: Case, rebuilt: list[dict[str, Any]]) -> None:
    """Also under other rule versions: ids come from the source's rows alone, so old and new can be compared."""
    rules = tuple(replace(rule, version="9", name=f"{rule.name}-b") for rule in RULES.rules)
    left = [row for row in rebuilt if row["origin"] is None]
    again = Case(case.spark, replace(RULES, rules=rules)).rebuild(left, **SOURCES)
    told = [sorted((row["event_id"], str(row["origin"]), row["name"]) for row in rows) for rows in (rebuilt, again)]
    assert told[0] == told[1]
    assert {row["rule_version"] for row in again} == {None, "9"}


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda case: case.rebuild([], retry=[], api=[]), "expected the sources api, orders, retry, found api, retry"),
        (
            lambda case: Case(case.spark, replace(RULES, id="nope")).rebuild([], retry=[], api=[], orders=[]),
            "the table has no column nope",
        ),
    ],
)
def test_frames_that_do_not_fit_the_rules_are_refused(case: Case, change: Callable[[Case], Any], said: str) -> None:
    """Before Spark reports it in its own words."""
    with pytest.raises(TransformFailed, match=said):
        change(case)
