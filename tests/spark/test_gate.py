"""The gate around its numbers: trials before a plan, thresholds after a scan, and how much Spark is asked to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ForeignPartition, PermissionRefused, TransformFailed, ValidationRejected
from errata.gate.measure.scan_plan import compile_plan
from support.office import ANA
from support.world import PRODUCT, PRODUCT_FILE, TABLE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]
COMPARED = PRODUCT_FILE + 'compare:\n  - {name: gross moved, metric: "sum(gross)", warn: 5%, block: 90%}\n'


def test_a_trial_shows_what_a_run_would_change_and_leaves_no_trace(make_world: Make) -> None:
    """The difference and the gate's findings are those of a run; table, refs and ledger are as before."""
    world = make_world(days=3, product=COMPARED)
    world.ledger.create()
    before = (world.snapshot(), world.refs(), world.client.status().runs, len(world.client.audit_log()))
    view = world.client.try_out(PRODUCT, world.days[1], as_="ana")
    assert view.rows == 3
    (part,) = view.diff.diff.partitions
    assert (part.partition, part.changed, part.unchanged) == (world.days[1], 3, 0)
    assert view.diff.diff.columns["gross"].changed == 3
    assert not view.passed
    assert {check.name for check in view.checks if check.level == "warn"} == {"gross moved"}
    after = (world.snapshot(), world.refs(), world.client.status().runs, len(world.client.audit_log()))
    assert after == before


@pytest.mark.parametrize(
    "body, error",
    [
        ("raise KeyError('rate')", TransformFailed),
        ("return raw.withColumn('day', F.date_add('day', 40)).transform(lambda r: _right(ctx, r))", ForeignPartition),
        ("return _right(ctx, raw.withColumn('amount', F.expr('amount / 0')))", TransformFailed),
    ],
)
def test_a_trial_of_a_broken_transform_says_what_a_run_would_say(make_world: Make, body: str, error: type) -> None:
    """Errors of the code, at build time or in a task, and rows of other partitions."""
    broken = f"{TRANSFORM}\n_right = build\n\ndef build(ctx, raw):\n    {body}\n"
    world = make_world(days=1, transform=broken)
    with pytest.raises(error):
        world.client.try_out(PRODUCT, world.days[0], as_="ana")


def test_a_changed_threshold_is_judged_without_a_scan_and_stays_on_the_record(world_at: WorldAt) -> None:
    """No Spark job runs; the verdict, the audit and later judgements know who changed what and why."""
    world, run = world_at("staged", days=2, product=COMPARED)
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    _edit(world, "warn: 5%", "warn: 60%")
    with pytest.raises(PermissionRefused):
        world.client.validate(run, thresholds="halving is the fix", as_="ana")
    jobs = _jobs(world)
    view = world.client.validate(run, thresholds="halving is the fix", as_="bo")
    assert _jobs(world) == jobs
    assert (view.passed, view.state) == (True, "validated")
    (change,) = view.thresholds
    assert (change["person"], change["why"]) == ("bo", "halving is the fix")
    assert change["changes"] == [{"name": "gross moved", "before": {"warn": "5%"}, "after": {"warn": "60%"}}]
    assert [e.action for e in world.client.audit_log(run) if e.action.startswith("fact.")] == ["fact.thresholds.1"]
    again = world.client.validate(run, as_="ana")
    assert (again.already, again.passed, len(again.thresholds)) == (True, True, 1)


def test_the_number_of_spark_jobs_grows_with_neither_checks_nor_partitions(make_world: Make) -> None:
    """Twenty checks over forty days take the jobs that three take over four days."""
    few = make_world(days=4)
    wide = "".join(f'  - {{name: c{n}, expression: "gross < {n}", mustBe: 0}}\n' for n in range(17))
    many = make_world(days=40, rows=1, product=PRODUCT_FILE.replace("reconcile:", f"{wide}reconcile:"))
    assert _gate_jobs(few) == _gate_jobs(many)


def test_what_is_committed_after_the_candidate_changes_nothing_judged_and_is_never_published(world_at: WorldAt) -> None:
    """Rows on the run branch and on the candidate's own branch after the verdict: the same numbers, the same rows."""
    world, run = world_at("staged", days=2)
    judged = world.client.validate(run, as_="ana")
    late = f"VALUES (date'{world.days[0]}', 'late', 1, 1, null, null)"
    world.sql(f"INSERT INTO {TABLE}.`branch_errata_{run}` {late}")
    again = world.client.validate(run, as_="ana")
    assert (again.already, again.checks, again.snapshot_id) == (True, judged.checks, judged.snapshot_id)
    world.sql(f"INSERT INTO {TABLE}.`branch_{judged.candidate}` {late}")
    later = world.client.validate(run, as_="ana")
    assert [c for c in later.checks if c["name"] == "adopted"] == [c for c in judged.checks if c["name"] == "adopted"]
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def _gate_jobs(world: World) -> int:
    plan = world.plan()
    workspace = world.workspace
    manifest = workspace.ledger.runs.manifest(plan.id, ANA)
    base = str(world.snapshot())
    before = _jobs(world)
    found = workspace.engines.measurer.measure(
        manifest, compile_plan(manifest), candidate_snapshot=base, prior_snapshot=base
    )
    assert {m.partition for m in found} == set(world.days)
    return _jobs(world) - before


def _jobs(world: World) -> int:
    """Jobs that Spark itself remembers."""
    return int(world.spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def _edit(world: World, old: str, new: str) -> None:
    place = world.root / "products/sales.yaml"
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    world.configure("project: test", "project: test")
