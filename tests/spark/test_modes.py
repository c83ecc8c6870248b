"""Publication modes through whole runs: what readers see, what a live write does, what a rollback leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException

from errata.errors import EngineError, PlanRefused, PublishConflict, RunFailed
from errata.model.refs import pre_tag, undo_branch
from support.world import PRODUCT_FILE, TABLE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]

RECONCILE = "reconcile:" + PRODUCT_FILE.partition("reconcile:")[2].partition("lineage_columns:")[0]
APPEND = PRODUCT_FILE.replace("mode: replace_partitions", "mode: append")
MERGE = PRODUCT_FILE.replace("{mode: replace_partitions,", "{mode: merge, merge: {version: n, delete: gone},").replace(
    RECONCILE, ""
)
# account a0 is not given, a1 is deleted, the rest is corrected at an equal version
CHANGES = TRANSFORM.replace("    return raw", "    rows = raw").rstrip() + (
    '\n    return rows.where("account <> \'a0\'").withColumn("gone", F.col("account") == "a1")\n'
)


def merged_rows(world: World, day: str) -> list[tuple[object, ...]]:
    """What the merge leaves of a day, computed here."""
    wrong = {row[1]: row for row in world.wrong([day])}
    right = {row[1]: row for row in world.expected([day])}
    return sorted([wrong["a0"], *(row for name, row in right.items() if name not in ("a0", "a1"))])


def incremental(world: World, after: int | None) -> int:
    """Rows that an incremental reader gets after a snapshot."""
    reader = world.spark.read.format("iceberg").option("start-snapshot-id", str(after))
    return reader.load(TABLE).count()


def test_append_atomic_whole_scope(make_world: Make) -> None:
    """One append snapshot with every partition of the scope; incremental readers see its rows."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    before = world.snapshot()
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    table = world.table()
    head = table.current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary.operation.value == "append"
    assert head.summary.additional_properties["errata.publication"] == world.publication(run)
    assert world.rows() == sorted(world.wrong(world.days[:1]) + world.expected(world.days[1:]))
    assert incremental(world, before) == len(world.expected(world.days[1:]))


@pytest.mark.slow
def test_append_conflict_detected(make_world: Make) -> None:
    """Rows that are live by then are kept, and the rest of the scope can still go out."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    with pytest.raises(PlanRefused, match=f"1 of 3 partitions are not empty: {world.days[0]}"):
        world.plan()
    run = world.to("validated", f"{world.days[1]}..{world.days[2]}")
    world.live(world.days[1])
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    world.client.publish(run, partitions=world.days[2], as_="bo")
    days = {row[0]: row[1] for row in world.rows() if row[0] != world.days[0]}
    assert days[world.days[1]] == "live"
    assert [row for row in world.rows() if row[0] == world.days[2]] == world.expected([world.days[2]])


@pytest.mark.slow
def test_append_per_partition_rollback(make_world: Make) -> None:
    """The files are taken out again, one partition at a time; what stood beside them stays."""
    world = make_world(days=3, product=APPEND, history=False)
    world.write_history(world.days[:1])
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    world.client.rollback(run, partitions=world.days[1], reason="too early", as_="bo")
    assert world.rows() == sorted(world.wrong(world.days[:1]) + world.expected(world.days[2:]))
    world.client.rollback(run, reason="all of it", as_="bo")
    assert world.rows() == world.wrong(world.days[:1])


def test_merge_atomic_whole_scope(make_world: Make) -> None:
    """Keys that are not given stay, deleted ones go, the rest is corrected: in one commit that writes no data file.

    Prior rows are read as readers see them: one that a delete file took out, and whose key is not given, stays out.
    """
    world = make_world(days=2, product=MERGE, transform=CHANGES, properties={"write.delete.mode": "merge-on-read"})
    world.sql(f"DELETE FROM {TABLE} WHERE account = 'a0' AND day = date'{world.days[1]}'")
    run = world.to("validated")
    parts = world.client.diff(run).diff.partitions
    assert [(part.removed, part.changed, part.added) for part in parts] == [(1, 1, 0), (1, 1, 0)]
    view = world.client.publish(run, as_="bo")
    assert view.data_files_written == 0
    rows = sorted(row for day in world.days for row in merged_rows(world, day))
    assert world.rows() == [row for row in rows if row[:2] != (world.days[1], "a0")]


@pytest.mark.slow
def test_merge_per_partition_rollback(make_world: Make) -> None:
    """What the merge took out or changed comes back, also rows that delete files had hidden stay hidden."""
    world = make_world(
        days=2, product=MERGE, transform=CHANGES, properties={"write.delete.mode": "merge-on-read"}, rows=4
    )
    world.sql(f"DELETE FROM {TABLE} WHERE account = 'a3' AND day = date'{world.days[0]}'")
    before = world.rows()
    run = world.to("published")
    # a3 was given by the transform, so it is there again; a0 was not, and has its old row
    assert [row for row in world.rows() if row[0] == world.days[0]] == merged_rows(world, world.days[0])
    world.client.rollback(run, partitions=world.days[0], reason="wrong version", as_="bo")
    assert [row for row in world.rows() if row[0] == world.days[0]] == [r for r in before if r[0] == world.days[0]]
    world.client.rollback(run, reason="all of it", as_="bo")
    assert world.rows() == before


@pytest.mark.slow
def test_merge_conflict_detected(world_at: WorldAt) -> None:
    """What was merged with is the base; a live write since is a conflict."""
    world, run = world_at("validated", days=2, product=MERGE, transform=CHANGES)
    world.live(world.days[0])
    with pytest.raises(PublishConflict, match=world.days[0]):
        world.client.publish(run, as_="bo")


@pytest.mark.slow
def test_an_ambiguous_merge_fails_its_chunk_and_names_the_key(make_world: Make) -> None:
    """Two changes of one key at one version."""
    doubled = CHANGES.replace("    return rows.where", "    rows = rows.unionAll(rows)\n    return rows.where")
    world = make_world(days=1, product=MERGE, transform=doubled)
    with pytest.raises(RunFailed, match="two changes of one key have the same version: day=2026-01-01, account=a"):
        world.to("staged")


CORRECTIONS = "lake.fin.sales_corrections"
BESIDE = PRODUCT_FILE.replace(
    "{mode: replace_partitions,", "{mode: replace_partitions, corrections: " + CORRECTIONS + ","
)
ALONE = BESIDE.replace("mode: replace_partitions", "mode: corrections")
VERSIONS, VIEW = "lake.fin.sales_versions", "lake.fin.sales_accepted"
VERSION = PRODUCT_FILE.replace(
    "{mode: replace_partitions,", "{mode: version, versions: " + VERSIONS + ", view: " + VIEW + ","
)


CURRENT, SHADOW = "lake.fin.sales_current", "lake.fin.errata_swap_sales"
SWAP = PRODUCT_FILE.replace("{mode: replace_partitions,", "{mode: swap_view, view: " + CURRENT + ",")


def is_there(world: World, name: str) -> bool:
    """Whether a table or view can be read."""
    try:
        world.sql(f"SELECT 1 FROM {name} LIMIT 0")
    except AnalysisException:
        return False
    return True


def told(world: World, publication: str) -> list[tuple[str, str, str, str | None, str | None]]:
    """Corrections of a publication: day, account, kind, old and new gross."""
    rows = world.sql(
        f"SELECT partition, account, kind, get_json_object(old, '$.gross'), get_json_object(new, '$.gross') "
        f"FROM {CORRECTIONS} WHERE publication_id = '{publication}' ORDER BY 1, 2"
    )
    return [tuple(row) for row in rows]


def corrected(world: World, days: tuple[str, ...]) -> list[tuple[str, str, str, str | None, str | None]]:
    """What the corrections should say, computed here."""
    return [(day, name, "changed", str(gross * 2), str(gross)) for day, name, gross, _ in world.expected(days)]


def test_corrections_history_kept(make_world: Make) -> None:
    """Beside a replacement: a row for each key, the reverse on rollback, and `why` answers when snapshots are gone."""
    world = make_world(days=2, product=BESIDE)
    plan = world.plan()
    (statement,) = plan.publish["creates"]
    assert statement.startswith("CREATE TABLE IF NOT EXISTS `lake`.`fin`.`sales_corrections` USING iceberg")
    run = world.to("published")
    assert told(world, world.publication(run)) == corrected(world, world.days)
    assert world.rows() == world.expected()
    world.client.rollback(run, partitions=world.days[0], reason="not this day", as_="bo")
    back = [(day, name, kind, new, old) for day, name, kind, old, new in corrected(world, world.days[:1])]
    assert told(world, world.publication(run, 2)) == back
    # what an expiry leaves: no snapshot of before, no undo set
    ledger = world.ledger
    world.engines.staging.drop_refs(TABLE, [undo_branch(world.publication(run)), pre_tag(world.publication(run))])
    assert ledger.outbox.list_open() == ()
    found = world.client.why(TABLE, world.days[0], key={"account": "a1"})
    gross = {row[1]: row[2] for row in world.expected(world.days[:1])}["a1"]
    published = next(item for item in found.history if item.action == "published")
    assert (published.before or {})["gross"] == str(gross * 2)
    assert (published.after or {})["gross"] == str(gross)
    taken_back = next(item for item in found.history if item.action == "rolled_back")
    assert (taken_back.after or {})["gross"] == str(gross * 2)


def test_rows_on_a_branch_that_was_dropped_meanwhile_are_not_shown(world_at: WorldAt) -> None:
    """An append then brings the branch back from main; landing that would show every correction twice."""
    world, run = world_at("published", days=1, product=BESIDE)
    engines = world.engines
    before = world.sql(f"SELECT count(*) FROM {CORRECTIONS}")
    branch = engines.beside.open_branch(CORRECTIONS, f"{run}-x9")
    engines.staging.drop_refs(CORRECTIONS, [branch])
    world.sql(f"ALTER TABLE {CORRECTIONS} CREATE BRANCH `{branch}`")
    world.sql(f"INSERT INTO {CORRECTIONS}.`branch_{branch}` SELECT * FROM {CORRECTIONS} LIMIT 1")
    with pytest.raises(EngineError, match="was dropped while it was written"):
        engines.beside.land(CORRECTIONS, f"{run}-x9", branch, {"errata.publication": f"{run}-x9"})
    assert world.sql(f"SELECT count(*) FROM {CORRECTIONS}") == before


@pytest.mark.slow
def test_corrections_alone_leave_the_target_alone(make_world: Make) -> None:
    """Events are published, main is not touched; a live write is a conflict, and a rollback says the opposite."""
    world = make_world(days=2, product=ALONE)
    files = world.files()
    run = world.to("validated")
    view = world.client.publish(run, partitions=world.days[0], as_="bo")
    assert view.data_files_written > 0
    assert told(world, world.publication(run)) == corrected(world, world.days[:1])
    world.live(world.days[1])
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    world.client.rollback(run, reason="all of it", as_="bo")
    assert len(told(world, world.publication(run, 2))) == len(corrected(world, world.days[:1]))
    assert {day: paths for day, paths in world.files().items() if day == world.days[0]} == {
        world.days[0]: files[world.days[0]]
    }


@pytest.mark.slow
def test_corrections_alone_go_on_from_what_was_told_before(world_at: WorldAt) -> None:
    """A second run says what changes for those who applied the first; its rollback takes them back to the first."""
    world, _ = world_at("published", days=1, product=ALONE.replace(RECONCILE, ""))
    place = world.root / "transforms/sales.py"
    place.write_text(place.read_text().replace('F.sum("amount")', '(F.sum("amount") + 1)'))
    second = world.to("published", reason="plus one")
    plus_one = [(d, a, "changed", str(g), str(g + 1)) for d, a, g, _ in world.expected()]
    assert told(world, world.publication(second)) == plus_one
    world.client.rollback(second, reason="no", as_="bo")
    assert told(world, world.publication(second, 2)) == [(d, a, kind, new, old) for d, a, kind, old, new in plus_one]


def test_version_history_kept(world_at: WorldAt) -> None:
    """Two runs stand side by side; the view shows what is accepted, and goes back without deleting anything."""
    world, first = world_at("published", days=2, product=VERSION)
    before = world.wrong()
    assert world.rows() == before
    assert accepted(world) == world.expected()
    place = world.root / "transforms/sales.py"
    place.write_text(place.read_text().replace('F.sum("amount")', '(F.sum("amount") + 1)'))
    (world.root / "products/sales.yaml").write_text(VERSION.replace(RECONCILE, "").lstrip())
    world.configure("limits:", "limits: ")
    second = world.to("published", world.days[0], reason="plus one")
    assert [row[3] for row in versions(world)] == [1, 1, 1, 2, 2, 2, 1, 1, 1]
    plus_one = sorted((d, a, g + 1, n) for d, a, g, n in world.expected(world.days[:1]))
    assert accepted(world) == sorted(plus_one + world.expected(world.days[1:]))
    world.client.rollback(second, reason="no", as_="bo")
    assert accepted(world) == world.expected()
    world.client.rollback(first, partitions=world.days[0], reason="no", as_="bo")
    assert accepted(world) == world.expected(world.days[1:])
    assert len(versions(world)) == 9


def accepted(world: World) -> list[tuple[str, str, object, int]]:
    """What readers of the view see."""
    return sorted((str(r.day), r.account, r.gross, r.n) for r in world.sql(f"SELECT * FROM {VIEW}"))


def versions(world: World, table: str = VERSIONS) -> list[tuple[str, str, str, int]]:
    """Everything that stands in the table of versions."""
    rows = world.sql(f"SELECT day, errata_version, account, errata_run_id FROM {table} ORDER BY 1, 2, 3")
    return [(str(r.day), r.account, r.errata_run_id, r.errata_version) for r in rows]


def test_swap_view_shows_corrected_partitions_and_live_ones(make_world: Make) -> None:
    """The view has the target's shape; other partitions show live rows at once; a rollback shows the target again."""
    world = make_world(days=3, product=SWAP)
    world.sql(f"CREATE VIEW {CURRENT} AS SELECT * FROM {TABLE}")
    before = world.rows()
    run = world.to("published", f"{world.days[1]}..{world.days[2]}")
    assert world.rows() == before
    world.live(world.days[0])
    found = world.sql(f"SELECT * FROM {CURRENT}")
    seen = sorted((str(r.day), r.account, r.gross, r.n) for r in found if r.account != "live")
    assert seen == sorted(world.wrong(world.days[:1]) + world.expected(world.days[1:]))
    assert sum(r.account == "live" for r in found) == 1
    assert found[0].asDict().keys() == world.sql(f"SELECT * FROM {TABLE}")[0].asDict().keys()
    world.client.rollback(run, partitions=world.days[1], reason="one", as_="bo")
    back = world.sql(f"SELECT sum(gross) g FROM {CURRENT} WHERE day = date'{world.days[1]}'")[0].g
    assert back == sum(row[2] for row in world.wrong([world.days[1]]))
