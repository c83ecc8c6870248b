"""Restore from somewhere else than the table: a backup table at a snapshot, or recorded files."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import NotFound, PlanRefused
from support.world import TABLE, World

Make = Callable[..., World]
BACKUP = "lake.fin.backup"
SOURCE = "sources: {dump: {format: parquet, range: {column: day}}}\n"


def spoil(world: World, day: str) -> None:
    """A job that nobody governs empties a column of a day."""
    world.sql(f"UPDATE {TABLE} SET gross = cast(0 as decimal(12,2)) WHERE day = date'{day}'")


def finish(world: World, run: str) -> None:
    """Approve, compute, judge and publish."""
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, run)


@pytest.mark.parametrize("spec", ["PARTITIONED BY (day)", ""])
def test_partitions_come_back_from_another_table_at_its_snapshot(make_world: Make, spec: str) -> None:
    """Lineage included, and as the backup was then: rows written to it since do not come; the gate compares every row.

    The backup need not have the partitions of the target.
    """
    world = make_world(days=3)
    run = world.to("published")
    right = world.sql(f"SELECT * FROM {TABLE} ORDER BY day, account")
    world.sql(f"CREATE TABLE {BACKUP} USING iceberg {spec} AS SELECT * FROM {TABLE}")
    (then,) = world.sql(f"SELECT snapshot_id FROM {BACKUP}.snapshots")
    world.sql(f"INSERT INTO {BACKUP} SELECT * FROM {BACKUP}")
    spoil(world, world.days[1])
    plan = world.plan(world.days[1], restore_from=BACKUP, restore=str(then.snapshot_id), reason="script")
    assert (plan.kind, plan.restored["origin"], plan.restored["snapshot_id"]) == ("restore", BACKUP, str(then[0]))
    finish(world, plan.id)
    assert world.sql(f"SELECT * FROM {TABLE} ORDER BY day, account") == right
    assert {row.produced_by_run_id for row in right} == {run}
    (found,) = [
        check
        for check in world.ledger.candidates.latest_verdict(plan.id, (world.days[1],)).checks
        if check["name"] == "restore"
    ]
    assert (found["level"], found["message"]) == ("ok", "3 rows, the same as in restored")
    assert world.client.audit_verify().ok


def test_what_does_not_fit_is_refused_by_name(make_world: Make) -> None:
    """A column that is missing or has another type, a partition without rows, and names of nothing."""
    world = make_world(days=2)
    world.sql(
        f"CREATE TABLE {BACKUP} USING iceberg AS SELECT day, account, cast(gross as double) gross, "
        f"restatement_reason FROM {TABLE} WHERE day = date'{world.days[0]}'"
    )
    with pytest.raises(PlanRefused, match="its column gross is double, and the target's is decimal") as refused:
        world.plan(world.days[0], restore_from=BACKUP)
    assert "it has no column n" in str(refused.value)
    world.sql(f"CREATE TABLE {BACKUP}2 USING iceberg AS SELECT * FROM {TABLE} WHERE day = date'{world.days[0]}'")
    with pytest.raises(PlanRefused, match=f"has no rows of {world.days[1]}: they would be empty afterwards"):
        world.plan(restore_from=f"{BACKUP}2")
    with pytest.raises(NotFound, match=r"fin\.backup9 was not found"):
        world.plan(restore_from=f"{BACKUP}9")
    with pytest.raises(NotFound, match=r"a copy of fin\.sales \(none\) or a source of errata\.yaml \(none\)"):
        world.plan(restore_from="pg:shop.sales")
    with pytest.raises(PlanRefused, match="that is the target itself"):
        world.plan(restore_from=TABLE)
    assert world.snapshot() == world.start


def test_partitions_come_back_from_recorded_files(make_world: Make) -> None:
    """A dump of a day, imported, is put back; a run that needs a day that is not recorded is refused."""
    world = make_world(days=2, project=SOURCE)
    day = world.days[0]
    wrong = [row for row in world.rows() if row[0] == day]
    rows = world.table().scan().to_arrow().to_pylist()
    types = pa.schema(
        [("day", pa.date32()), ("account", pa.string()), ("gross", pa.decimal128(12, 2)), ("n", pa.int64())]
    )
    dump = pa.Table.from_pylist([row for row in rows if str(row["day"]) == day], types)
    pq.write_table(dump, world.root / "dump.parquet")
    with pytest.raises(PlanRefused, match="nothing of it is recorded") as refused:
        world.plan(day, restore_from="dump")
    assert refused.value.hint == "errata record dump --from TIME --to TIME"
    world.client.import_files(str(world.root / "dump.parquet"), "dump", as_="ana")
    spoil(world, day)
    plan = world.plan(day, restore_from="dump", reason="script")
    assert [v.message for v in plan.verdicts if v.rule == "restore" and v.level == "warn"] == [
        "recording:dump has no column produced_by_run_id, restatement_reason: rows do not say which run made them"
    ]
    finish(world, plan.id)
    assert [row for row in world.rows() if row[0] == day] == wrong
    with pytest.raises(PlanRefused, match=r"source-missing|has no rows"):
        world.plan(world.days[1], restore_from="dump")
