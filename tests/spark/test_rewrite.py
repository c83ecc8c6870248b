"""Tables whose partitions are no sets of files: corrected in one commit, and nobody else's rows are touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.errors import EngineError, PublishConflict
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.model.refs import PREFIX
from spark import test_modes as modes
from support.world import PRODUCT_FILE, TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
SHAPES = {
    "unpartitioned": "",
    "coarser": "months(day)",
    "bucket": "bucket(2, account)",
    "both": "account, months(day)",
}


@pytest.mark.parametrize(
    "shape", [name if name == "unpartitioned" else pytest.param(name, marks=pytest.mark.slow) for name in SHAPES]
)
def test_partitions_that_share_files_are_corrected_and_taken_back(make_world: Make, shape: str) -> None:
    """Planned, sealed, published and rolled back by day, where no file is of one day."""
    world = make_world(days=4, spec=SHAPES[shape])
    first, *scope, last = world.days
    plan = world.plan(f"{scope[0]}..{scope[1]}")
    assert plan.rewrite["files"] > 0
    assert plan.rewrite["bytes"] > 0
    (told,) = [verdict.message for verdict in plan.verdicts if verdict.rule == "rewrite"]
    assert "not by day of day" in told
    sealed = world.ledger.runs.manifest(plan.id).target
    assert (sealed.mode, sealed.rewrite.files, sealed.shadow is not None) == ("rewrite", plan.rewrite["files"], True)
    run = world.to("published", f"{scope[0]}..{scope[1]}")
    assert world.rows() == sorted([*world.wrong([first, last]), *world.expected(scope)])
    assert world.ledger.publications.list(run)[0].data_files_written > 0
    view = world.client.rollback(run, partitions=scope[0], reason="undo", as_="bo")
    assert view.data_files_written > 0
    assert world.rows() == sorted([*world.wrong([first, scope[0], last]), *world.expected([scope[1]])])
    assert world.client.rollback(run, reason="the rest", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_files_of_one_day_are_exchanged_and_not_written_anew(make_world: Make) -> None:
    """Bounds prove that a file is of one partition where the spec does not; such days cost no rewrite."""
    world = make_world(days=2, spec="", history=False)
    for day in world.days:
        world.write_history([day])
    plan = world.plan(world.days[0])
    assert plan.rewrite["files"] == 0
    run = world.to("published", world.days[0])
    assert world.ledger.publications.list(run)[0].data_files_written == 0
    assert world.rows() == sorted([*world.expected([world.days[0]]), *world.wrong([world.days[1]])])
    view = world.client.rollback(run, reason="undo", as_="bo")
    assert view.data_files_written == 0
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_rows_that_others_write_meanwhile_are_kept_and_in_scope_they_are_a_conflict(make_world: Make) -> None:
    """A shared file that changed after its rows were carried over is carried over again; no write is lost."""
    world = make_world(days=3, spec="", properties={"write.update.mode": "copy-on-write"})
    first, hit, last = world.days
    run = world.to("validated", hit)
    changed = _once(lambda: world.sql(f"UPDATE {TABLE} SET gross = 7 WHERE day = date'{last}' AND account = 'a0'"))
    with arm("publish.before_commit", changed):
        assert world.client.publish(run, as_="bo").state == "published"
    seven = [(d, a, 7 if (d, a) == (last, "a0") else g, n) for d, a, g, n in world.wrong([first, last])]
    assert world.rows() == sorted([*seven, *world.expected([hit])])
    again = world.to("validated", hit, reason="again")
    world.sql(
        f"INSERT INTO {TABLE} VALUES (date'{hit}', 'live', 1, 1, null, null), (date'{last}', 'l', 1, 1, null, null)"
    )
    before = world.rows()
    with pytest.raises(PublishConflict) as conflict:
        world.client.publish(again, as_="bo")
    assert conflict.value.fields["partitions"] == [hit]
    assert "appended by snapshot" in conflict.value.message
    with pytest.raises(PublishConflict):
        world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == before


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2", "3"])
def test_deleted_rows_of_shared_files_stay_deleted(make_world: Make, version: str) -> None:
    """Merge-on-read: what was deleted in and out of scope is neither carried over nor brought back."""
    world = make_world(days=3, spec="", properties=MERGE_ON_READ | {"format-version": version})
    _, hit, last = world.days
    for day, account in ((hit, "a0"), (last, "a1")):
        world.sql(f"DELETE FROM {TABLE} WHERE day = date'{day}' AND account = '{account}'")
    assert _has_deletes(world)
    before = _rows(world)
    run = world.to("published", hit)
    others = [row for row in before if row[0] != hit]
    assert _rows(world) == sorted([*others, *world.expected([hit])])
    world.client.rollback(run, reason="undo", as_="bo")
    assert _rows(world) == before


@pytest.mark.slow
def test_files_of_an_older_coarser_spec_are_carried_over(make_world: Make) -> None:
    """Monthly, then daily: the days of before are corrected like the days since, and staged files stay daily."""
    world = make_world(days=4, spec="months(day)", history=False)
    world.write_history(world.days[:3])
    world.sql(f"ALTER TABLE {TABLE} REPLACE PARTITION FIELD months(day) WITH day")
    world.write_history(world.days[3:])
    old, new = world.days[1], world.days[3]
    plan = world.plan(f"{old},{new}")
    assert (plan.rewrite["files"], "another partition spec" in plan.rewrite["why"]) == (1, True)
    run = world.to("published", f"{old},{new}")
    assert world.rows() == sorted([*world.wrong([world.days[0], world.days[2]]), *world.expected([old, new])])
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_one_run_may_be_published_in_parts_and_be_taken_back_after_expiry(world_at: WorldAt) -> None:
    """The second part finds files that the first one wrote; the undo branch keeps rows, not the whole table."""
    world, run = world_at("validated", days=4, spec="")
    for part in (world.days[:2], world.days[2:]):
        world.client.publish(run, partitions=list(part), as_="bo")
    assert world.rows() == world.expected()
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    world.client.cleanup(as_="ana")
    assert not [ref for ref in world.refs() if ref.startswith(f"{PREFIX}{run}") and "_rest" in ref]
    world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_compaction_of_shared_files_is_no_conflict(make_world: Make) -> None:
    """Only content tells, and it is the same."""
    world = make_world(days=3, spec="")
    world.live(world.days[2], "x")
    run = world.to("validated", world.days[1])
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    world.client.publish(run, as_="bo")
    assert [row for row in world.rows() if row[0] == world.days[1]] == world.expected([world.days[1]])
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    world.client.rollback(run, reason="undo", as_="bo")
    assert [row for row in world.rows() if row[1] != "x"] == world.wrong()


def test_an_append_into_partitions_that_may_share_files_is_refused(make_world: Make) -> None:
    """Metadata cannot prove that they are empty."""
    from errata.errors import PlanRefused

    world = make_world(days=3, spec="", product=PRODUCT_FILE.replace("replace_partitions", "append"), history=False)
    first, gap, last = world.days
    rows = f"(date'{first}', 'a', 1, 1, null, null), (date'{last}', 'a', 1, 1, null, null)"
    world.sql(f"INSERT INTO {TABLE} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    with pytest.raises(PlanRefused, match="not empty"):
        world.plan(gap)


def test_rows_that_were_not_written_as_they_were_read_are_not_published(make_world: Make) -> None:
    """What is on the branch is read back and compared, whatever made it differ."""
    world = make_world(days=1, spec="")
    engines = world.engines
    run = world.to("planned")
    target = world.ledger.runs.manifest(run).target
    unstable = world.spark.table(TABLE).withColumn("account", F.expr("reflect('java.util.UUID', 'randomUUID')"))
    publishing = engines.publishing
    guard, _ = publishing.ensure_guard(target)
    world.sql(f"ALTER TABLE {TABLE} CREATE BRANCH `errata_x_rest1` AS OF VERSION {guard}")
    with pytest.raises(EngineError, match="not written as they were read"):
        engines._rewriter._write(target, unstable, [F.col(name) for name in unstable.columns], "errata_x_rest1")


def _rows(world: World) -> list[tuple[object, ...]]:
    """Business columns by Spark, which reads deletion vectors as well."""
    found = world.sql(f"SELECT cast(day as string) day, account, gross, n FROM {TABLE}")
    return sorted((row.day, row.account, row.gross, row.n) for row in found)


def _has_deletes(world: World) -> bool:
    found = world.sql(f"SELECT count(*) c FROM {TABLE}.delete_files")
    return bool(found[0].c)


def _once(act: Callable[[], object]) -> Callable[[], None]:
    done: list[bool] = []

    def maybe() -> None:
        if not done:
            done.append(True)
            act()

    return maybe


@pytest.mark.slow
def test_a_merge_and_a_restore_work_where_files_are_shared(make_world: Make) -> None:
    """Both compute with rows of the scope, and neither cares which files they are in."""
    world = make_world(days=3, spec="", product=modes.MERGE, transform=modes.CHANGES)
    before, (first, hit, last) = world.snapshot(), world.days
    world.to("published", hit)
    others = world.wrong([first, last])
    assert world.rows() == sorted([*others, *modes.merged_rows(world, hit)])
    world.to("published", hit, restore=str(before), reason="the old numbers were right")
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_evidence_and_the_report_of_shared_files_stand(make_world: Make) -> None:
    """The bundle of such a run verifies after publication and after a rollback, and names what was carried over."""
    world = make_world(days=3, spec="", project='evidence: {key: "errata.key"}\n')
    public = generate_key_pair(world.root / "errata.key").pem
    run = world.to("published", world.days[1])
    assert verify(world.client.evidence(run, as_="bo")[1], [public]).problems == []
    detail = world.ledger.publications.detail(world.publication(run))
    assert detail["shared"] == [world.days[1]]
    assert sum(rows for _, _, rows in detail["carried"]) > 0
    world.client.rollback(run, reason="undo", as_="bo")
    assert verify(world.client.evidence(run, as_="bo")[1], [public]).problems == []
    told = world.client.history(TABLE, world.days[1]).commits
    assert [one.writer for one in told][:2] == ["errata", "errata"]
