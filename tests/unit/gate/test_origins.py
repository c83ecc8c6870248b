"""Recorded events stay as they are, and every other one follows a declared rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.gate.measure.origins import (
    RECORDED_CONTENT,
    RECORDED_ERASED,
    RECORDED_ROWS,
    UNDECLARED,
    build_origin_counts,
    rule_measure,
)
from errata.gate.measure.scan_plan import compile_plan
from errata.gate.verdict.findings import MeasurementIndex
from errata.gate.verdict.origins import judge_origins
from errata.model.product.erasure import ErasurePin
from errata.model.product.reconstruction import Match, RebuildRule, Reconstruction
from errata.ports.measure import CANDIDATE, LISTED, PRIOR, ROW_COUNT, Measurement, Scan
from unit.gate.manifests import manifest

DAY = "2026-01-01"
API = RebuildRule("api's log", "1", "api", match=Match(("user_id",), 5))
RULES = Reconstruction("event_id", "ts", (API,))


def _judge(now: dict[str, str], before: dict[str, str]) -> tuple[str, str]:
    places = {(CANDIDATE, name): value for name, value in now.items()}
    places |= {(PRIOR, name): value for name, value in {ROW_COUNT: "9", **before}.items()}
    numbers = {(s, DAY, n): Measurement(s, DAY, n, value) for (s, n), value in places.items()}
    found = judge_origins(DAY, RULES, manifest(reconstruct=RULES), MeasurementIndex(numbers))
    return found.level, found.message


NOW = {RECORDED_ROWS: "9", RECORDED_CONTENT: "77", UNDECLARED: "0", rule_measure(API): "1200"}
BEFORE = {RECORDED_ROWS: "9", RECORDED_CONTENT: "77"}


@pytest.mark.parametrize(
    "now, before, level, said",
    [
        ({}, {}, "ok", "9 recorded, 1,200 api (api's log 1)"),
        ({RECORDED_ROWS: "8"}, {}, "block", "9 recorded events before, 8 now; none may be lost or added"),
        ({RECORDED_ROWS: "10"}, {}, "block", "9 recorded events before, 10 now; none may be lost or added"),
        ({RECORDED_CONTENT: "78"}, {}, "block", "recorded events have other values than before"),
        ({UNDECLARED: "2"}, {}, "block", "2 events of no declared origin, rule and version"),
    ],
)
def test_origins_are_judged(now: dict[str, str], before: dict[str, str], level: str, said: str) -> None:
    """The counts are in every message."""
    found = _judge(NOW | now, BEFORE | before)
    assert (found[0], said in found[1], "api's log 1" in found[1]) == (level, True, True)


@pytest.mark.parametrize(
    "count, said", [("0", "9 recorded, "), ("3", "9 recorded (without <5 of"), ("7", "without 7 of")]
)
def test_recorded_events_of_erased_subjects_are_counted_and_few_are_hidden(count: str, said: str) -> None:
    """They are not among those that have to be there, and a small count could point to one person."""
    level, message = _judge(NOW, {**BEFORE, RECORDED_ERASED: count})
    assert (level, said in message) == ("ok", True)


def test_only_the_prior_output_is_counted_without_erased_subjects() -> None:
    """A candidate that has one of their events has one too many; without anyone on the list nothing is looked up."""
    pin = ErasurePin("lake.p.erased", "u", "k", "7", 1, ("user_id",))
    (now, before), empty = _select_counts(pin), _select_counts(replace(pin, snapshot_id=None))
    assert LISTED not in "".join(now.aggregates.values())
    assert before.subjects == ("user_id",)
    assert before.aggregates[RECORDED_ROWS] == f"COUNT_IF(`origin` IS NULL AND NOT `{LISTED}`)"
    assert f"NOT `{LISTED}`" in before.aggregates[RECORDED_CONTENT]
    assert (empty[1].subjects, RECORDED_ERASED in empty[1].aggregates) == ((), False)


def _select_counts(pin: ErasurePin) -> list[Scan]:
    scans = compile_plan(manifest(reconstruct=RULES, erasure=pin)).scans
    return [next(one for one in scans if one.scope == scope) for scope in (CANDIDATE, PRIOR)]


@pytest.mark.parametrize("missing", sorted(NOW))
def test_what_was_not_measured_blocks(missing: str) -> None:
    """A candidate without one of the numbers does not pass."""
    assert _judge({name: value for name, value in NOW.items() if name != missing}, BEFORE)[0] == "block"


def test_names_of_rules_are_text_in_sql() -> None:
    """A quote in a name ends nothing; columns that the publication adds are in no hash of old rows."""
    sql = build_origin_counts(manifest(reconstruct=RULES))
    assert sql[rule_measure(API)] == (
        "COUNT_IF((`origin` = 'api' AND `rule` = 'api\\'s log' AND `rule_version` = '1'))"
    )
    assert "`gross`" in sql[RECORDED_CONTENT]
    assert not build_origin_counts(manifest())
