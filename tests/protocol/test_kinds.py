"""What each kind of run promises: attest and reconcile change nothing, bootstrap fills, migrate takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from errata.cli.render.plan import render_plan
from errata.errors import Differs, PlanRefused, StateRefused, ValidationRejected
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.model.kind import CHECKING_KINDS, KINDS, REPAIR_COPIES
from errata.report.page import render_page
from errata.testing import arm
from errata.testing.metadata import Field
from support.memory_world import MemoryWorld, build
from support.terminal import answer, text
from support.waves import ALONE, in_waves
from support.world import PRODUCT_FILE, correct_rows

Make = Callable[..., MemoryWorld]
NOT_REPEATABLE = PRODUCT_FILE + "determinism: {repeatable: false}\n"
POINTS = (
    "plan.before_record",
    "plan.after_record",
    "plan.after_pin",
    "run.after_start",
    "run.after_branch",
    "chunk.after_claim",
    "stage.before_commit",
    "stage.after_commit",
    "stage.after_adopt",
    "run.before_staged",
    "candidate.after_intent",
    "candidate.after_commit",
    "validate.after_measure",
    "validate.after_verdict",
)


class Killed(BaseException):
    """The end of the process: nothing catches it."""


def _correct(world: MemoryWorld) -> None:
    """Publish the right rows, so that main is what the transform computes."""
    world.to("published")


def _check(world: MemoryWorld, kind: str, partitions: str | None = None, reason: str = "nightly") -> Any:
    """Plan, run and judge; the way a scheduler does it, as one person."""
    plan = world.plan(partitions, kind=kind, reason=reason)
    world.client.run(plan.id, as_="ana")
    return world.client.validate(plan.id, as_="ana")


def _main(world: MemoryWorld) -> list[str]:
    """The snapshots that main has had, newest first: all that a reader of main could ever see."""
    metadata, found = world.table.metadata, []
    at = metadata.head
    while at is not None:
        found.append(at.snapshot_id)
        at = metadata.snapshots.get(at.parent_id or "")
    return found


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_main_that_is_right_is_attested_without_a_second_person(make_world: Make, kind: str) -> None:
    """One account plans and runs it; nobody approves, and main keeps its snapshot."""
    world = make_world(days=2)
    _correct(world)
    before = _main(world)
    view = _check(world, kind)
    assert (view.state, view.passed, world.client.status(view.run_id).next) == ("attested", True, "")
    assert _main(world) == before
    assert not world.ledger.approvals.list(view.run_id)


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_a_check_of_a_product_with_waves_has_one_verdict_on_all_of_it(make_world: Make, kind: str) -> None:
    """Nothing is published, so nothing is cut into waves; a mistake in the oldest day is found."""
    world = make_world(days=3, product=in_waves("size: 1"))
    world.client.publish(world.to("validated"), wait=True, as_="bo")
    assert _check(world, kind).state == "attested"
    world.live(world.days[0])
    with pytest.raises(Differs):
        _check(world, kind)


@pytest.mark.parametrize("kind, rule", [("attest", "attest"), ("reconcile", "gross")])
def test_main_that_is_wrong_differs_with_the_exit_code_of_the_gate(make_world: Make, kind: str, rule: str) -> None:
    """The error names the rule and the partitions, and the plan that it suggests corrects exactly those."""
    world = make_world(days=3)
    world.to("published", f"{world.days[0]}..{world.days[1]}")
    before = _main(world)
    with pytest.raises(Differs, match=rule) as found:
        _check(world, kind)
    assert found.value.exit_code == 4
    assert f"--partitions {world.days[2]} " in (found.value.hint or "")
    wrong = {check["partition"] for check in found.value.fields["validation"].checks if check["level"] != "ok"}
    assert (wrong, _main(world)) == ({world.days[2]}, before)


def test_an_attestation_counts_rows_that_one_side_lacks(make_world: Make) -> None:
    """A row that a foreign job added to main is a difference, whatever the totals say."""
    world = make_world(days=1)
    _correct(world)
    world.live(world.days[0], account="foreign", gross="0.00")
    with pytest.raises(Differs, match="1 row only in main"):
        _check(world, "attest")


def test_lineage_columns_are_no_difference(make_world: Make) -> None:
    """Main says which run wrote it; an attestation by another run compares everything else."""
    world = make_world(days=1)
    _correct(world)
    assert all(row["produced_by_run_id"] for row in world.table.rows())
    assert _check(world, "attest").state == "attested"


def test_an_attestation_is_about_the_main_that_was_planned(make_world: Make) -> None:
    """A live write after the plan neither spoils the verdict nor is covered by it; the next plan sees it."""
    world = make_world(days=1)
    _correct(world)
    plan = world.plan(kind="attest", reason="nightly")
    world.live(world.days[0])
    world.client.run(plan.id, as_="ana")
    assert world.client.validate(plan.id, as_="ana").state == "attested"
    with pytest.raises(Differs):
        _check(world, "attest")


def test_a_plan_that_changes_nothing_does_not_say_that_it_publishes(make_world: Make) -> None:
    """Also where the product publishes without a person."""
    world = make_world(days=2, product=ALONE)
    for kind, is_said in (("attest", False), ("reconcile", False), ("restate", True)):
        text = "\n".join(render_plan(world.plan(kind=kind), 100))
        assert ("publishes by itself" in text) is is_said


def test_a_check_of_unchanged_data_is_the_same_run_with_the_same_answer(make_world: Make) -> None:
    """Pins decide: nothing is computed again while none of them changed, and a failed check fails again."""
    world = make_world(days=1)
    for _ in range(2):
        with pytest.raises(Differs):
            _check(world, "attest")
    _correct(world)
    first, second = _check(world, "reconcile"), _check(world, "reconcile")
    assert (first.run_id, second.already, second.state) == (second.run_id, True, "attested")


def test_what_was_staged_is_removed_with_the_verdict_and_the_diff_stays(make_world: Make) -> None:
    """Branches and tags go at once; a look at the difference needs none of them."""
    world = make_world(days=2)
    before = world.refs()
    with pytest.raises(Differs) as found:
        _check(world, "attest")
    assert world.refs() - before <= {"errata_guard"}
    run = found.value.fields["validation"].run_id
    assert sum(part.changed for part in world.client.diff(run).diff.partitions) == 6


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_a_run_that_changes_nothing_stands_in_nobodys_way(make_world: Make, kind: str) -> None:
    """It reserves no partition, and is planned beside a correction of the same ones."""
    world = make_world(days=2)
    check = world.plan(kind=kind, reason="nightly")
    correction = world.to("approved")
    assert world.plan(kind=kind, reason="another").state == "planned"
    assert {check.state, world.client.status(correction).state} == {"planned", "approved"}


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_a_run_that_changes_nothing_is_never_approved_released_or_published(make_world: Make, kind: str) -> None:
    """Each command says so and what to do instead; the states of such a run lead nowhere else."""
    world = make_world(days=1)
    _correct(world)
    before = _main(world)
    plan = world.plan(kind=kind, reason="nightly")
    with pytest.raises(StateRefused, match="needs no approval") as refused:
        world.client.approve(plan.id, digest=plan.digest, as_="bo")
    assert (refused.value.hint or "").startswith(f"errata run {plan.id}")
    world.client.run(plan.id, as_="ana")
    for end in (lambda: None, lambda: world.client.validate(plan.id, as_="ana")):
        end()
        with pytest.raises(StateRefused, match="changes nothing"):
            world.client.publish(plan.id, as_="bo")
        with pytest.raises(StateRefused, match="changes nothing"):
            world.client.release(plan.id, digest=plan.digest, as_="bo")
    assert (_main(world), world.count_publications()) == (before, 1)


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_a_finding_of_a_check_cannot_be_accepted_away(make_world: Make, kind: str) -> None:
    """There is nothing to publish, so there is nothing to decide about; other thresholds are another plan."""
    world = make_world(days=1)
    plan = world.plan(kind=kind, reason="nightly")
    world.client.run(plan.id, as_="ana")
    with pytest.raises(StateRefused, match="nothing to decide"):
        world.client.validate(plan.id, accept={"gross": "fine"}, as_="bo")


@pytest.mark.parametrize("kind", CHECKING_KINDS)
@pytest.mark.parametrize("point", POINTS)
def test_a_check_that_is_killed_leaves_main_alone_and_goes_on(
    make_world: Make, monkeypatch: pytest.MonkeyPatch, kind: str, point: str
) -> None:
    """Whatever the moment of death, main has the same snapshots before, after, and when the check is repeated."""
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "1")  # the dead process is this one, so only its lease ends
    world = make_world(days=2, chunk_bytes="1")
    _correct(world)
    before, rows = _main(world), world.rows()

    def die() -> None:
        raise Killed(point)

    passed = False
    with arm(point, die):
        try:
            _check(world, kind)
        except Killed:
            passed = True
    assert passed or kind == "reconcile", f"{kind} does not pass {point}"
    assert (_main(world), world.rows()) == (before, rows)
    world.client.close()
    world.open()
    assert _check(world, kind).state == "attested"
    assert (_main(world), world.rows(), world.count_publications()) == (before, rows, 1)


def test_reconcile_computes_nothing(make_world: Make) -> None:
    """The transform is not even loaded, no branch is created, and the plan seals no code of the project."""

    def explode(*_: Any) -> Any:
        raise AssertionError("the transform ran")

    world = make_world(days=1, transform=explode)
    plan = world.plan(kind="reconcile", reason="nightly")
    assert (plan.chunks, plan.code["call"]) == ((), "none: main is judged as it is")
    refs = world.refs()
    world.client.run(plan.id, as_="ana")
    assert world.refs() == refs
    with pytest.raises(Differs, match="gross"):
        world.client.validate(plan.id, as_="ana")


def test_reconcile_needs_rules_and_attest_a_repeatable_transform(make_world: Make) -> None:
    """A kind that could not answer its question is refused by name before any table is read."""
    bare = PRODUCT_FILE.split("checks:")[0]
    with pytest.raises(PlanRefused, match="no reconcile:, checks: or control: rules"):
        make_world(days=1, product=bare).plan(kind="reconcile")
    world = make_world(days=1, product=NOT_REPEATABLE)
    with pytest.raises(PlanRefused, match=r"determinism\.repeatable: false"):
        world.plan(kind="attest")
    assert world.plan(kind="restate").state == "planned"


def test_a_warning_makes_a_check_differ(make_world: Make) -> None:
    """A scheduled check has nobody who could accept a warning, so it never passes over one."""
    product = PRODUCT_FILE.replace("mustBeGreaterOrEqualTo: 0", "mustBeGreaterThan: 5, severity: warn")
    world = make_world(days=1, product=product)
    with pytest.raises(Differs, match="by rowCount"):
        _check(world, "reconcile")


def test_bootstrap_fills_only_empty_partitions(make_world: Make) -> None:
    """Partitions that hold data are named and left out of the suggested plan; an override cannot set this aside."""
    world = make_world(days=3, history=False)
    world.write_history(world.days[:1])
    with pytest.raises(PlanRefused, match="1 of 3 hold data: 2026-01-01") as refused:
        world.plan(kind="bootstrap", overrides={"kind": "hurry"})
    assert f"--partitions {world.days[1]}..{world.days[2]} --kind bootstrap" in (refused.value.hint or "")
    run = world.to("published", f"{world.days[1]}..{world.days[2]}", kind="bootstrap")
    assert world.client.status(run).state == "published"


def test_the_first_publication_of_a_table_counts_no_write_of_its_own(make_world: Make) -> None:
    """The snapshot without files that a table needs for branches is no live write; one of a live job is counted."""
    counts = []
    for is_live in (False, True):
        world = make_world(days=3, history=False)
        run = world.to("validated", world.days[0], kind="bootstrap")
        if is_live:
            world.live(world.days[2])
        counts.append(world.client.publish(run, as_="bo").live_commits)
    assert counts == [0, 1]


def test_replay_reads_every_old_row_or_is_refused(make_world: Make) -> None:
    """A correction may leave out what a source lost, on the record; a replay that did would not be one."""
    world = make_world(days=2)
    (world.root / f"raw/day={world.days[0]}").rename(world.root / "lost")
    for kind in ("replay", "restate"):
        with pytest.raises(PlanRefused, match="source-missing"):
            world.plan(kind=kind)
    assert world.plan(overrides={"source-missing": "lost for good"}).state == "planned"
    with pytest.raises(PlanRefused, match="replay reads every old row") as refused:
        world.plan(kind="replay", overrides={"source-missing": "lost for good"})
    assert "--kind restate" in (refused.value.hint or "")


MIGRATION = (
    PRODUCT_FILE.replace('files: "raw/day={day}/*.parquet"', "table: lake.fin.old")
    .replace("reconcile:\n", "")
    .replace('  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', "")
)


def _migrate(make_world: Make, change: Callable[[dict[str, Any]], dict[str, Any]]) -> MemoryWorld:
    """A table to migrate, and a transform that takes its rows over with one change."""

    def take_over(_: Any, raw: Any) -> list[dict[str, Any]]:
        return [change(row) for row in raw.to_pylist()]

    world = make_world(days=2, product=MIGRATION, transform=take_over, history=False)
    columns = {"day": "date", "account": "string", "gross": "decimal(12, 2)", "n": "long"}
    world.lake.create("lake.fin.old", columns, partition=("day", "identity"))
    rows = [row for name in world.days for row in correct_rows(world.root, name)]
    world.lake.table("lake.fin.old").append([{"day": d, "account": a, "gross": g, "n": n} for d, a, g, n in rows])
    return world


def test_a_migration_takes_over_every_row_with_its_values(make_world: Make) -> None:
    """The gate compares all rows with the source, so equal counts with one other value do not pass."""
    world = _migrate(make_world, lambda row: row)
    run = world.to("published", kind="migrate")
    assert world.rows() == world.expected()
    verdict = world.ledger.candidates.latest_verdict(run)
    assert verdict is not None
    assert {check["level"] for check in verdict.checks if check["name"] == "migrate"} == {"ok"}
    other = _migrate(make_world, lambda row: {**row, "n": row["n"] + (row["account"] == "a0")})
    with pytest.raises(ValidationRejected, match="not with the same values"):
        other.to("validated", kind="migrate")


def test_a_migration_needs_one_other_table_with_the_same_columns(make_world: Make) -> None:
    """Otherwise there is nothing to compare with; an override leaves the comparison out, on the record."""
    with pytest.raises(PlanRefused, match="exactly one input that is another table"):
        make_world(days=1).plan(kind="migrate")
    world = _migrate(make_world, lambda row: row)
    world.lake.table("lake.fin.old").change_columns(lambda fields: [one for one in fields if one.name != "n"])
    with pytest.raises(PlanRefused, match="n is missing there"):
        world.plan(kind="migrate")
    assert world.plan(kind="migrate", overrides={"kind": "n is new"}).overrides == {"kind": "n is new"}


def test_reconstruct_reads_references_as_they_were_recorded(make_world: Make) -> None:
    """A plan that reads what is known now is refused by name; a product without references is planned."""
    rates = "inputs:\n  rates: {table: lake.fin.rates, reference: current}\n"
    world = make_world(days=1, product=PRODUCT_FILE.replace("inputs:\n", rates))
    world.lake.create("lake.fin.rates", {"currency": "string"}, partition=None)
    world.lake.table("lake.fin.rates").append([{"currency": "EUR"}])
    with pytest.raises(PlanRefused, match="rates is read current") as refused:
        world.plan(kind="reconstruct")
    assert "--kind restate" in (refused.value.hint or "")
    assert make_world(days=1).plan(kind="reconstruct").state == "planned"


def _seen_modes(world_of: Callable[..., MemoryWorld], kind: str) -> Iterator[str]:
    seen: list[str] = []

    def transform(ctx: Any, raw: Any) -> Any:
        seen.append(ctx.mode.value)
        return build(ctx, raw)

    world = world_of(days=1, transform=transform)
    if kind == "try":
        world.client.try_out("fin.sales", world.days[0], as_="ana")
    elif kind in CHECKING_KINDS:
        with pytest.raises(Differs):
            _check(world, kind)
    else:
        world.to("staged", kind=kind)
    yield from dict.fromkeys(seen)


@pytest.mark.parametrize(
    "kind, mode",
    [("restate", "BACKFILL"), ("backfill", "BACKFILL"), ("replay", "REPLAY"), ("attest", "RECONCILIATION"),
     ("try", "DRY_RUN")],
)  # fmt: skip
def test_a_transform_sees_the_mode_that_the_run_has(make_world: Make, kind: str, mode: str) -> None:
    """A transform that has to know what it computes for is told the truth."""
    assert list(_seen_modes(make_world, kind)) == [mode]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != REPAIR_COPIES])
def test_every_kind_is_planned_or_refused_by_its_own_rule(make_world: Make, kind: str) -> None:
    """Each name seals a plan of that kind, or says in its own words why this product cannot have it."""
    world = make_world(days=1)
    if kind in ("bootstrap", "migrate", "restore"):
        with pytest.raises(PlanRefused, match=kind):
            world.plan(kind=kind, restore=world.snapshot() if kind == "restore" else None)
    else:
        assert world.plan(kind=kind).kind == kind


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_two_commands_and_an_exit_code_are_a_scheduled_check(make_world: Make, kind: str) -> None:
    """`errata run` goes on to the verdict by itself: 0 when main is right, the exit code of the gate when it is not."""
    world = make_world(days=2)
    plan = f'errata plan fin.sales --partitions {world.days[0]}..{world.days[1]} --kind {kind} --reason "nightly"'
    wrong = answer(world, plan, "ana")
    for _ in range(2):  # the same answer when it is repeated
        code, said = text(world, f"errata run {wrong['run_id']}", "ana")
        assert code == 4
        assert "error[differs]: lake.fin.sales differs in 2 partitions" in said
    assert text(world, f"errata publish {wrong['run_id']}", "bo")[0] == 3
    assert text(world, f"errata run {wrong['run_id']} --publish", "bo")[0] == 3
    _correct(world)
    right = answer(world, plan, "ana")
    view = answer(world, f"errata run {right['run_id']}", "ana")
    assert (view["state"], view["kind"], view["passed"]) == ("attested", kind, True)
    code, said = text(world, f"errata status {right['run_id']}", "ana")
    assert code == 0
    assert "attested" in said


@pytest.mark.parametrize("kind", CHECKING_KINDS)
def test_a_check_has_a_report_and_evidence_that_verifies(make_world: Make, kind: str) -> None:
    """What was asked, what was compared and the answer can be handed on; the bundle holds no publication."""
    world = make_world(days=1)
    public = generate_key_pair(world.root / "errata.key")
    world.configure("project: ", "evidence: {key: errata.key}\nproject: ")
    with pytest.raises(Differs) as found:
        _check(world, kind)
    run = found.value.fields["validation"].run_id
    page = render_page(world.client.report(run))
    assert "Main differs. Nothing was changed." in page
    assert "rolled back" not in page
    _, bundle = world.client.evidence(run, as_="bo")
    told = verify(bundle, [public.pem])
    assert (told.problems, dict(told.facts)["gate"].split(",")[0]) == ([], "differs")


def test_lineage_says_mode_files_and_time(make_world: Make) -> None:
    """A row names the list of files that it was computed from, which the plan holds, and when its attempt began."""
    product = PRODUCT_FILE.replace(
        "[produced_by_run_id, restatement_reason]", "[processing_mode, input_snapshot_id, produced_at]"
    )
    world = make_world(days=1, product=product, history=False)
    new = [Field(0, name, "string") for name in ("processing_mode", "input_snapshot_id", "produced_at")]
    world.table.change_columns(lambda old: [*old[:4], *new])
    run = world.to("published", kind="replay")
    manifest = world.ledger.runs.manifest(run)
    (attempt,) = world.ledger.progress.attempts(run)
    assert {(row["processing_mode"], row["input_snapshot_id"], row["produced_at"]) for row in world.table.rows()} == {
        ("REPLAY", f"raw=files:{manifest.inputs[0].files_part}", attempt.started_at)
    }
    assert world.ledger.parts.get(manifest.inputs[0].files_part or "")
