"""A product's policy: a trial or a canary before a plan, an expected number of rows; and the stages of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PlanRefused, UsageError, ValidationRejected
from errata.model.kind import KINDS
from support.memory_world import MemoryWorld
from support.terminal import answer, text
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]


def _product(policy: str) -> str:
    return PRODUCT_FILE + f"policy: {{{policy}}}\n"


def test_a_plan_needs_the_canary_that_the_policy_demands(make_world: Make) -> None:
    """By number or by name; an override is possible, on the record, as with other guardrails."""
    world = make_world(days=2, product=_product("require: [canary]"))
    with pytest.raises(PlanRefused, match=r"policy\.require canary: the plan has no canary") as refused:
        world.plan()
    assert "--canary 1" in (refused.value.hint or "")
    assert world.plan(canary=1).state == "planned"
    world = make_world(days=2, product=_product("require: [canary]"))
    assert world.plan(canary=world.days[0]).state == "planned"
    world = make_world(days=2, product=_product("require: [canary]"))
    assert world.plan(overrides={"policy": "one row"}).overrides == {"policy": "one row"}


def test_a_plan_needs_a_trial_of_exactly_this_code(make_world: Make) -> None:
    """A trial of other code, or one that the gate blocked, is none; trials are recorded only where that matters."""
    world = make_world(days=2, product=_product("require: [dry_run]"))
    with pytest.raises(PlanRefused, match="no trial of this code") as refused:
        world.plan()
    assert f"errata try fin.sales {world.days[0]}" in (refused.value.hint or "")
    world.client.try_out("fin.sales", world.days[0], as_="ana")
    assert world.plan(world.days[0]).state == "planned"
    (world.root / "transforms/sales.py").write_text("def build(ctx, raw): return 2\n")
    with pytest.raises(PlanRefused, match="no trial of this code"):
        world.plan(world.days[1])
    other = make_world(days=1)
    other.client.try_out("fin.sales", other.days[0], as_="ana")
    assert other.ledger.audit.entries() == ()


def test_the_first_command_of_a_project_may_be_the_trial_that_its_policy_demands(make_world: Make) -> None:
    """The ledger is made for it, as a plan makes it."""
    world = make_world(days=1, product=_product("require: [dry_run]"))
    world.client.close()
    for file in (world.root / ".errata").glob("ledger.db*"):
        file.unlink()
    world.open()
    world.client.try_out("fin.sales", world.days[0], as_="ana")
    assert world.plan().state == "planned"


def test_a_trial_that_the_gate_blocked_is_no_permission(make_world: Make) -> None:
    """It is on record, with who tried it; one that only warned is enough."""
    blocks = _product("require: [dry_run]").replace("mustBeGreaterOrEqualTo: 0", "mustBeGreaterThan: 50")
    world = make_world(days=1, product=blocks)
    assert not world.client.try_out("fin.sales", world.days[0], as_="ana").passed
    with pytest.raises(PlanRefused, match=r"by ana at .* was blocked by the gate"):
        world.plan()
    warns = blocks.replace("mustBeGreaterThan: 50", "mustBeGreaterThan: 50, severity: warn")
    world = make_world(days=1, product=warns)
    assert not world.client.try_out("fin.sales", world.days[0], as_="ana").passed
    assert world.plan().state == "planned"


@pytest.mark.parametrize("kind", ["attest", "reconcile"])
def test_a_run_that_changes_nothing_needs_neither(make_world: Make, kind: str) -> None:
    """The policy protects the table."""
    world = make_world(days=1, product=_product("require: [dry_run, canary]"))
    assert world.plan(kind=kind).state == "planned"


@pytest.mark.parametrize(
    "span, passes", [("6", True), ("5", False), ("1..6", True), ("7..", False), ("6..", True), ("..5", False)]
)
def test_the_gate_counts_the_rows_of_the_whole_run(make_world: Make, span: str, passes: bool) -> None:
    """By request or by policy; the expectation is part of the sealed plan."""
    by_request, by_policy = make_world(days=2), make_world(days=2, product=_product(f'expected_rows: "{span}"'))
    for world, options in ((by_request, {"expected_rows": span}), (by_policy, {})):
        run = world.to("staged", **options)
        assert [check.name for check in world.ledger.runs.manifest(run).checks][-1] == "expected_rows"
        if passes:
            assert world.client.validate(run, as_="ana").passed
        else:
            with pytest.raises(ValidationRejected, match="expected_rows blocks"):
                world.client.validate(run, as_="ana")


def test_a_request_takes_the_place_of_the_policy_and_a_trial_has_no_expectation(make_world: Make) -> None:
    """Two days have six rows; a trial of one of them is not held to that."""
    world = make_world(days=2, product=_product("expected_rows: 6"))
    tried = world.client.try_out("fin.sales", world.days[0], as_="ana")
    assert all(check.name != "expected_rows" for check in tried.checks)
    run = world.to("staged", world.days[0], expected_rows="3")
    assert world.client.validate(run, thresholds="the same rules", as_="bo").passed


@pytest.mark.parametrize("span", ["", "x", "5..1", "..", "-1", "1...2", "1e3"])
def test_a_number_of_rows_that_is_none_is_refused(make_world: Make, span: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError, match=r"1000\.\.5000"):
        make_world(days=1).plan(expected_rows=span)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("bootstrap", "migrate", "restore", "repair_copies")]
)
def test_the_stages_of_a_run_are_told_in_order(make_world: Make, kind: str) -> None:
    """Each with its command, what it reads and what it writes; what changes nothing has no stage that publishes."""
    world = make_world(days=3)
    canary = {} if kind in ("attest", "reconcile") else {"canary": 1}
    view = world.plan(kind=kind, explain=True, **canary)
    names = {
        "attest": ["plan", "compute", "judge"],
        "reconcile": ["plan", "judge"],
    }.get(kind, ["plan", "approve", "canary", "compute", "judge", "release", "publish"])
    assert [stage.name for stage in view.stages] == names
    writes_main = [stage.name for stage in view.stages if any("lake.fin.sales: " in one for one in stage.writes)]
    assert writes_main == (["publish"] if "publish" in names else [])
    assert all(stage.reads and stage.writes for stage in view.stages)


def test_explain_is_text_and_json_and_changes_no_plan(make_world: Make) -> None:
    """The same plan with and without; the words name the table and the files that are read."""
    world = make_world(days=2)
    line = f'errata plan fin.sales --partitions {world.days[0]} --reason "doubled"'
    plain, told = answer(world, line, "ana"), answer(world, f"{line} --explain", "ana")
    assert (plain["run_id"], "stages" in plain) == (told["run_id"], False)
    assert [stage["name"] for stage in told["stages"]] == ["plan", "approve", "compute", "judge", "release", "publish"]
    code, said = text(world, f"{line} --explain --dry-run", "ana")
    assert code == 0
    assert (
        f"errata publish {plain['run_id']} reads main's files in scope writes an undo branch of lake.fin.sales" in said
    )
