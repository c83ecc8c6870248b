"""Sinks: what a transform sends beside its output, decided by the sealed plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.errors import ErrataError, ProjectFileError, RunFailed, TransformFailed
from errata.model.context import Mode
from errata.model.product.sinks import DROP, FORBID, SEND, SINK_CLASSES, Sink, require_allowed_sink
from support.memory_world import MemoryWorld, build
from support.world import PRODUCT, PRODUCT_FILE

Make = Callable[..., MemoryWorld]


def declare(kind: str, backfill: str = "") -> str:
    chosen = f", backfill: {backfill}" if backfill else ""
    return f"{PRODUCT_FILE}sinks:\n  alerts: {{class: {kind}{chosen}}}\n"


def emit(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    rows = build(ctx, raw)
    ctx.emit("alerts", rows)
    return rows


@pytest.mark.parametrize("kind", [name for name, one in SINK_CLASSES.items() if one.decision == FORBID])
def test_a_run_that_sends_to_a_forbidden_sink_fails_before_it_is_staged(make_world: Make, kind: str) -> None:
    """The error names the sink, its class and what to do instead; main and the branch stay as they were."""
    world = make_world(days=1, transform=emit, product=declare(kind))
    run = world.to("approved")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    error = failed.value.fields["run"].failures[0]["error"]
    assert (
        f"ctx.emit to 'alerts' was refused: the plan forbids a BACKFILL run to send to a sink of class {kind}" in error
    )
    assert SINK_CLASSES[kind].instead in error
    assert world.rows() == world.wrong()


@pytest.mark.parametrize("kind, backfill", [("cache", ""), ("materialized_view", ""), ("notification", "drop")])
def test_a_run_drops_what_its_plan_says_is_dropped(make_world: Make, kind: str, backfill: str) -> None:
    """Nothing is sent, and the output is what it would be without the sink."""
    world = make_world(days=1, transform=emit, product=declare(kind, backfill))
    run = world.to("published")
    assert world.rows() == world.expected()
    assert world.client.show(run).sinks == {"alerts": f"{kind}: drop"}


def test_the_sealed_plan_decides_and_not_the_file_of_today(make_world: Make) -> None:
    """Who edits the product file after the approval changes the next plan, not this run."""
    world = make_world(days=1, transform=emit, product=declare("notification"))
    run = world.to("approved")
    path = world.root / "products/sales.yaml"
    path.write_text(declare("notification", "drop"))
    world.open()
    with pytest.raises(RunFailed):
        world.client.run(run, as_="ana")


def test_a_trial_finds_what_a_run_would_refuse(make_world: Make) -> None:
    """Also that a sink was not declared, with the nearest name that was."""
    world = make_world(days=1, transform=emit, product=declare("ticket"))
    with pytest.raises(TransformFailed, match="forbids a DRY_RUN run to send to a sink of class ticket"):
        world.client.try_out(PRODUCT, partitions=world.days[0], as_="ana")
    world = make_world(days=1, transform=emit, product=declare("ticket").replace("alerts:", "alert:"))
    with pytest.raises(TransformFailed, match="expected a sink of the product, found alert in the plan") as failed:
        world.client.try_out(PRODUCT, partitions=world.days[0], as_="ana")
    assert "did you mean alert?" in (failed.value.hint or "")


@pytest.mark.parametrize("wrong", ["class: kafka", "class: cache, backfill: allow", "backfill: drop"])
def test_a_sink_that_is_not_known_is_a_problem_of_the_file(make_world: Make, wrong: str) -> None:
    """A class has to be one of ten, and a run forbids, drops or sends."""
    with pytest.raises((ProjectFileError, ErrataError), match=r"sinks\.alerts"):
        make_world(days=1, product=f"{PRODUCT_FILE}sinks:\n  alerts: {{{wrong}}}\n")


def test_a_plan_without_sinks_has_the_bytes_it_had_before(make_world: Make) -> None:
    """The key is sealed only where it is used."""
    world = make_world(days=1)
    assert b'"sinks"' not in world.ledger.runs.manifest_bytes(world.to("planned"))


def test_every_class_has_a_default() -> None:
    """Nine classes that a run sends nothing to, and the topic that is there for corrections."""
    assert len(SINK_CLASSES) == 10
    assert {kind for kind in SINK_CLASSES if Sink(kind).decision not in (FORBID, DROP)} == {"backfill_topic"}
    assert Sink("backfill_topic").decision == SEND
    assert require_allowed_sink({"x": Sink("cache")}, "x", Mode.REPLAY).decision == DROP


def test_the_guide_lists_every_class_as_it_is() -> None:
    """With its default and what to do instead."""
    guide = (Path(__file__).parents[2] / "docs/guides/write-a-transform.md").read_text(encoding="utf-8")
    for name, found in SINK_CLASSES.items():
        assert f"| `{name}` | `{found.decision}` | {found.instead} |" in guide
