"""A trial that fails: what it says is true for a trial, which has no run, no chunk and no plan."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.errors import (
    ErrataError,
    ForeignPartition,
    OutputContract,
    PermissionRefused,
    PlanRefused,
    TransformFailed,
)
from support.memory_world import MemoryWorld, build
from support.world import PRODUCT

Make = Callable[..., MemoryWorld]


def _count_in_text(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [{**row, "n": str(row["n"])} for row in build(ctx, raw)]


def _leave_out_n(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "n"} for row in build(ctx, raw)]


def _move_to_another_day(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [{**row, "day": row["day"].replace(year=2025)} for row in build(ctx, raw)]


def _divide(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [{**row, "n": 1 // 0} for row in build(ctx, raw)]


@pytest.mark.parametrize(
    "transform, kind, fix",
    [
        (_count_in_text, OutputContract, "cast n to bigint at the end of the transform: types are never cast for you"),
        (_leave_out_n, OutputContract, "select exactly the target's columns at the end of the transform; "),
        (_move_to_another_day, ForeignPartition, "filter the transform's output to ctx.partitions"),
        (_divide, TransformFailed, "correct it"),
    ],
)
def test_a_failed_trial_wrote_nothing_and_leads_to_another_trial(
    make_world: Make, transform: Callable[..., Any], kind: type[ErrataError], fix: str
) -> None:
    """The hint names the change and the trial to repeat; nothing speaks of a chunk or of planning again."""
    world = make_world(days=2, transform=transform)
    with pytest.raises(kind) as failed:
        world.client.try_out(PRODUCT, partitions=f"{world.days[0]}..{world.days[1]}", as_="ana")
    told, *then = (failed.value.hint or "").splitlines()
    assert told.startswith(fix)
    assert then == [f"then: errata try {PRODUCT} {world.days[0]}..{world.days[1]}"]
    assert failed.value.state == "nothing was written"
    assert "chunk" not in failed.value.message


def test_a_trial_that_is_refused_shows_only_the_rules_that_decide_about_it(make_world: Make) -> None:
    """A trial sets the rules that protect a table aside by itself, so it does not report that it did."""
    world = make_world(days=1)
    with pytest.raises(PlanRefused, match="source-missing") as refused:
        world.client.try_out(PRODUCT, partitions="2026-03-01", as_="ana")
    shown = refused.value.fields["plan"].verdicts
    assert {verdict.rule for verdict in shown} == {"source-missing", "schema"}
    assert not [verdict for verdict in shown if "was not needed" in verdict.message]


def test_a_trial_by_someone_unknown_is_refused_for_that_before_there_is_a_ledger(
    make_world: Make, tmp_path: Path
) -> None:
    """A refusal is recorded where there is a ledger; it neither needs one nor creates it."""
    world = make_world(days=1)
    shutil.copytree(world.root, tmp_path / "new", ignore=shutil.ignore_patterns(".errata"))
    with (
        errata.open(str(tmp_path / "new")) as client,
        pytest.raises(PermissionRefused, match="root is not listed under people") as refused,
    ):
        client.try_out(PRODUCT, partitions=world.days[0], as_="root")
    assert "ana" in (refused.value.hint or "")
    assert "--as NAME" in (refused.value.hint or "")
    assert not (tmp_path / "new/.errata/ledger.db").exists()
