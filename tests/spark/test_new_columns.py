"""New output columns: staged in a shadow, seen by readers with the publication, and never before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from pyiceberg.catalog import load_catalog

from errata.errors import PublishConflict, RunFailed
from errata.failpoints import arm
from support.world import PRODUCT_FILE, TABLE, TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]

NEW = ("events", "largest")
PRODUCT = PRODUCT_FILE.replace(
    "key: [day, account]", 'key: [day, account]\n  add_columns: {events: long, largest: "decimal(12,2)"}'
).replace("reconcile:", '  - {name: events seen, expression: "events is null or events < 1", mustBe: 0}\nreconcile:')
BUILD = TRANSFORM.replace(
    'F.count("*").alias("n"))',
    'F.count("*").alias("n"), F.count("*").alias("events"), F.max("amount").alias("largest"))',
)


def shadows(world: World) -> list[str]:
    """Tables beside the target, by pyiceberg."""
    with closing(load_catalog("lake", **world.lake.pyiceberg)) as catalog:
        return sorted(name for _, name in catalog.list_tables("fin") if name != "sales")


def columns(world: World, snapshot_id: int | None = None) -> set[str]:
    """What a reader of main, or of a snapshot, sees."""
    return set(world.table().scan(snapshot_id=snapshot_id).to_arrow().column_names)


def features(world: World) -> dict[tuple[str, str], tuple[Any, Any]]:
    """The new columns by day and account."""
    return {
        (str(r["day"]), r["account"]): (r["events"], r["largest"]) for r in world.table().scan().to_arrow().to_pylist()
    }


def test_readers_see_new_columns_with_the_publication_and_not_before(make_world: Make) -> None:
    """A live commit in between is kept; after the shadow is gone every row still reads, old snapshots as they were."""
    world = make_world(days=3, product=PRODUCT, transform=BUILD)
    old, rows = columns(world), world.rows()
    plan = world.plan()
    assert dict(plan.new_columns) == {"events": "long", "largest": "decimal(12, 2)"}
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    assert world.client.validate(plan.id, as_="ana").passed
    assert (columns(world), world.rows()) == (old, rows)
    assert f"errata_{plan.id}" not in world.refs()
    assert len(shadows(world)) == 1
    found = world.client.diff(plan.id).diff
    assert set(found.schema.added) == set(NEW)
    changed = {name for name, change in found.columns.items() if change.changed}
    assert changed == {"gross"}, "a new column is a change of the schema, not of every row"

    head = world.snapshot()
    with arm("publish.before_commit", _once(lambda: world.live("2026-02-01"))):
        view = world.client.publish(plan.id, as_="bo")
    assert (view.state, view.data_files_written, view.warnings) == ("published", 0, ())
    assert columns(world) == old | set(NEW)
    assert columns(world, head) == old
    assert [row for row in world.rows() if row[1] != "live"] == world.expected()
    got = features(world)
    assert got.pop(("2026-02-01", "live")) == (None, None)
    assert set(got) == {(day, account) for day, account, _, _ in world.expected()}
    assert all(events == 2 and largest is not None for events, largest in got.values())

    world.client.cleanup(as_="ana")
    assert shadows(world) == []
    assert len(features(world)) == len(got) + 1
    live = {urlparse(path).path for paths in world.files().values() for path in paths}
    assert {str(path) for path in _beside(world).rglob("*.parquet")} <= live, "only what the table reads is left"
    assert not list(_beside(world).rglob("*.json"))

    again = world.plan(reason="once more")
    assert dict(again.new_columns) == {}


@pytest.mark.slow
def test_the_second_part_finds_the_columns_and_a_rollback_leaves_them(world_at: WorldAt) -> None:
    """Days published later join the same columns; a day taken back has NULL there, the others keep their values."""
    world, run = world_at("validated", days=3, product=PRODUCT, transform=BUILD)
    first, second, third = world.days
    world.client.publish(run, partitions=[first], as_="bo")
    by_day = {day: {f for (d, _), f in features(world).items() if d == day} for day in world.days}
    assert by_day[second] == by_day[third] == {(None, None)}
    assert (None, None) not in by_day[first]
    assert world.client.publish(run, as_="bo").state == "published"
    world.client.rollback(run, partitions=[second], reason="too early", as_="bo")
    assert set(NEW) <= columns(world)
    assert {f for (day, _), f in features(world).items() if day == second} == {(None, None)}
    assert all(f != (None, None) for (day, _), f in features(world).items() if day != second)
    assert [row for row in world.rows() if row[0] == second] == world.wrong([second])
    world.client.rollback(run, reason="all of it", as_="bo")
    assert world.rows() == world.wrong()
    world.client.cleanup(as_="ana")
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    assert world.rows() == world.wrong()
    undo = [ref for ref in world.refs() if ref.endswith("_undo")]
    assert len(undo) == 4, "two publications and two rollbacks can still be undone"


def test_a_live_change_of_the_schema_in_between_is_a_conflict(world_at: WorldAt) -> None:
    """The field ids of staged files are taken by then; main stays as live left it and a new plan goes through."""
    world, run = world_at("validated", days=1, product=PRODUCT, transform=BUILD)
    world.sql(f"ALTER TABLE {TABLE} ADD COLUMNS (remark string)")
    rows = world.rows()
    with pytest.raises(PublishConflict, match=r"expected schema 0 .* found schema 1"):
        world.client.publish(run, as_="bo")
    assert (columns(world) & set(NEW), world.rows()) == (set(), rows)


def test_a_cancelled_run_leaves_neither_shadow_nor_files(world_at: WorldAt) -> None:
    """Main was never touched, and nothing of what was staged stays on disk."""
    world, run = world_at("staged", days=2, product=PRODUCT, transform=BUILD)
    place = _beside(world)
    assert list(place.rglob("*.parquet"))
    world.client.cancel(run, reason="no longer needed", as_="ana")
    assert [item["ref"] for item in world.client.cleanup(dry_run=True, as_="ana").removed if "shadow" in item["table"]]
    assert len(shadows(world)) == 1
    world.client.cleanup(as_="ana")
    assert shadows(world) == []
    assert not list(place.rglob("*.parquet"))
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_columns_that_a_transform_leaves_out_are_null_only_by_override_and_required_ones_never(
    world_at: WorldAt,
) -> None:
    """Without the override the chunk is refused and says what would help; a NULL in a required column fails it."""
    less = TRANSFORM.replace(', F.count("*").alias("n")', "")
    world, run = world_at("approved", days=1, transform=less)
    with pytest.raises(RunFailed, match="column n is missing"):
        world.client.run(run, as_="ana")
    world.client.cancel(run, reason="no longer needed", as_="ana")
    again = world.to("published", overrides={"schema": "n is retired"}, supersede=run)
    assert "schema" in world.client.show(again).overrides
    assert {row[3] for row in world.rows()} == {None}

    (world.root / "transforms/sales.py").write_text(
        TRANSFORM.replace('alias("n"))', 'alias("n")).withColumn("n", F.when(F.col("account") != "a0", F.col("n")))')
    )
    world.sql(f"DROP TABLE {TABLE} PURGE")
    world.sql(
        f"CREATE TABLE {TABLE} (day date, account string, gross decimal(12,2), n bigint NOT NULL, produced_by_run_id "
        "string, restatement_reason string) USING iceberg PARTITIONED BY (day)"
    )
    with pytest.raises(RunFailed, match=f"column n of {TABLE} is required, and the transform's output holds NULL"):
        world.client.run(world.to("approved", reason="hollow"), as_="ana")


def _beside(world: World) -> Path:
    """The directory of the shadow."""
    table = Path(urlparse(world.table().location()).path)
    return next(path for path in table.parent.iterdir() if "shadow" in path.name)


def _once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]
    return lambda: left.pop()() if left else None
