"""Runs that rebuild missing events: what the plan, the gate and the report say, and how a bad rule is replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.errors import ErasedSince, PlanRefused, Rebased, ValidationRejected
from errata.evidence.keys import generate_key_pair
from errata.report.page import render_page
from support.missing_events import LOST, PRODUCT, TABLE, append_live, count_origins, edit, make_events
from support.world import World

Make = Callable[..., World]
RANGE = f"{LOST[0]}..{LOST[-1]}"


def _plan(world: World, **options: Any) -> Any:
    given = {"partitions": RANGE, "kind": "reconstruct", "reason": "SDK dropped views", "as_": "ana"} | options
    return world.client.plan(PRODUCT, **given)


def _findings(view: Any, name: str) -> dict[str, tuple[str, str]]:
    return {check["partition"]: (check["level"], check["message"]) for check in view.checks if check["name"] == name}


def _publish(world: World, plan: Any) -> str:
    run = str(plan.id)
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, run)
    return run


def test_missing_events_are_rebuilt_once_and_a_bad_rule_is_superseded(make_world: Make) -> None:
    """Publish, roll back, supersede: the report shows both rules; a late event wins; attest finds the same rows."""
    world = make_world(days=1)
    make_events(world)
    before = world.sql(f"SELECT * FROM {TABLE} WHERE origin IS NULL ORDER BY event_id")
    assert count_origins(world) == {"": 4}
    edit(world, "within: 5s", "within: 1s")  # too narrow: the API log is two seconds late
    first = _plan(world)
    told = {one.rule: (one.level, one.message) for one in first.verdicts}
    assert "missing events by retry-buffer 1 (retry), api-log 1 (api)" in told["kind"][1]
    world.step("approved", str(first.id))
    world.step("staged", str(first.id))
    view = world.client.validate(str(first.id), as_="ana")
    assert _findings(view, "origins")[LOST[0]] == ("ok", "2 recorded, 2 retry (retry-buffer 1), 6 api (api-log 1)")
    world.step("published", str(first.id))
    assert count_origins(world) == {"": 4, "retry retry-buffer 1": 4, "api api-log 1": 12}
    world.client.rollback(str(first.id), reason="views of the retry buffer are there twice", as_="bo")
    assert count_origins(world) == {"": 4}

    edit(world, "within: 1s", "within: 5s")
    with pytest.raises(PlanRefused, match=r"rule api-log 1 was match on user_id\+action\+object_id within 1 in bf-"):
        _plan(world, supersede=str(first.id))
    edit(world, "- name: api-log\n      version: 1", "- name: api-log\n      version: 2")
    second = _plan(world, supersede=str(first.id))
    assert [one.rule for one in second.rules_changed] == ["rebuild rule api-log"]
    run = _publish(world, second)
    assert count_origins(world) == {"": 4, "retry retry-buffer 1": 4, "api api-log 2": 8}
    page = render_page(world.client.report(run))
    assert "Where events come from" in page
    assert all(text in page for text in ("api-log 1", "api-log 2", "retry-buffer 1"))

    append_live(world, "late", f"{LOST[0]}:30:02", "u3", "p3")
    third = _plan(world, reason="events that came late")
    _publish(world, third)
    assert count_origins(world) == {"": 5, "retry retry-buffer 1": 4, "api api-log 2": 7}
    after = world.sql(f"SELECT * FROM {TABLE} WHERE origin IS NULL AND event_id <> 'late' ORDER BY event_id")
    assert after == before

    attest = _plan(world, kind="attest", reason="nightly")
    world.client.run(str(attest.id), as_="ana")
    assert world.client.validate(str(attest.id), as_="ana").state == "attested"


def test_a_live_write_in_the_middle_is_taken_over(make_world: Make) -> None:
    """live_wins: an event that arrives before the publication is in the table once, and its rebuilt twin is not."""
    world = make_world(days=1)
    make_events(world, "publish: {on_live_write: live_wins}")
    run = str(_plan(world).id)
    for state in ("approved", "staged", "validated"):
        world.step(state, run)
    append_live(world, "late", f"{LOST[0]}:50:00", "u5", "p5")
    with pytest.raises(Rebased):
        world.client.publish(run, as_="bo")
    for state in ("staged", "validated", "published"):
        world.step(state, run)
    assert count_origins(world) == {"": 5, "retry retry-buffer 1": 4, "api api-log 1": 7}


def test_recorded_events_of_erased_subjects_are_left_out_and_counted(make_world: Make, tmp_path: Path) -> None:
    """Before the run, and in its middle even if no source knows them; the others stay as they were recorded."""
    generate_key_pair(tmp_path / "key")
    world = make_world(days=1, project=f'erasure: {{table: lake.privacy.erased, key: "{tmp_path / "key"}"}}\n')
    make_events(world)
    edit(world, "  key: [event_id]\n", "  key: [event_id]\n  subjects: [user_id]\n")
    edit(world, "lookahead: 1h}", "lookahead: 1h, subjects: [user_id]}")
    append_live(world, "seen", f"{LOST[0]}:30:00", "only-recorded", "p3")
    world.client.erase(["u1"], reason="request 1", as_="bo")
    run = str(_plan(world).id)
    for state in ("approved", "staged"):
        world.step(state, run)
    view = world.client.validate(run, as_="ana")
    left = "(without <5 of erased subjects)"
    told = {hour: message.split(",")[0] for hour, (_, message) in _findings(view, "origins").items()}
    assert told == {LOST[0]: f"2 recorded {left}", LOST[1]: f"1 recorded {left}"}

    world.client.erase(["only-recorded"], reason="request 2", as_="bo")
    with pytest.raises(ErasedSince) as raised:
        world.client.validate(run, as_="ana")
    assert LOST[0] in raised.value.fields["partitions"]
    for state in ("staged", "validated", "published"):
        world.step(state, run)
    hours = f"WHERE ts >= timestamp'{LOST[0]}:00:00' AND ts < timestamp'{LOST[1]}:59:59'"
    users = {row[0] for row in world.sql(f"SELECT DISTINCT user_id FROM {TABLE} {hours}")}
    assert users == {"u0", "u2", "u3", "u4", "u5"}
    assert count_origins(world) == {"": 2, "retry retry-buffer 1": 2, "api api-log 1": 8}


BAD = """
from pyspark.sql import functions as F

from errata import reconstruct


def build(ctx, retry, api):
    events = reconstruct.rebuild(ctx, {"retry": retry, "api": api})
    return events.CHANGE
"""


@pytest.mark.parametrize(
    "change, said",
    [
        ('where("action <> \'buy\' OR object_id <> \'p1\'")', "2 recorded events before, 1 now"),
        ('withColumn("object_id", F.when(F.col("origin").isNull(), "x").otherwise(F.col("object_id")))',
         "recorded events have other values than before"),
        ('withColumn("rule_version", F.when(F.col("origin").isNotNull(), "7"))',
         "6 events of no declared origin, rule and version"),
    ],
    ids=["lost", "changed", "undeclared"],
)  # fmt: skip
@pytest.mark.slow
def test_the_gate_blocks_a_transform_that_touches_recorded_events(make_world: Make, change: str, said: str) -> None:
    """Whatever a transform does after the rebuild, recorded events stay and every other one follows a declared rule."""
    world = make_world(days=1)
    make_events(world)
    (world.root / "transforms/events.py").write_text(BAD.replace("CHANGE", change))
    run = str(_plan(world, partitions=LOST[0]).id)
    for state in ("approved", "staged"):
        world.step(state, run)
    with pytest.raises(ValidationRejected) as found:
        world.client.validate(run, as_="ana")
    level, message = _findings(found.value.fields["validation"], "origins")[LOST[0]]
    assert (level, said in message) == ("block", True)
