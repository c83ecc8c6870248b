"""Rules of the Iceberg adapter that only Spark and a whole run can show: what is written, kept and looked at again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from errata.failpoints import arm
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
EXPIRE = (
    "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
)


def test_chunks_are_written_in_order_of_their_partitions_and_not_with_a_file_open_for_each(world_at: WorldAt) -> None:
    """Without fanout Iceberg asks for rows sorted by partition, so the plan of the write sorts by day."""
    world, run = world_at("approved", days=2)
    world.client.run(run, as_="ana")
    store = world.spark._jsparkSession.sharedState().statusStore()
    runs = store.executionsList()
    plans = [str(runs.apply(n).physicalPlanDescription()) for n in range(runs.size())]
    write = next(plan for plan in reversed(plans) if "AppendData" in plan and "Aggregate" in plan)
    assert re.search(r"Sort.*\nInput.*\nArguments: \[day#\d+ ASC NULLS FIRST\], false", write), write


@pytest.mark.slow
def test_an_expiry_keeps_every_snapshot_of_a_run_branch(world_at: WorldAt) -> None:
    """Adopted attempts are old snapshots of the branch; an expiry that keeps one per branch leaves them all."""
    world, run = world_at("staged", days=3, chunk_bytes=ONE_DAY)
    adopted = {int(chunk.snapshot_id or 0) for chunk in world.ledger.progress.chunks(run)}
    assert len(adopted) == 3
    world.sql(EXPIRE)
    assert adopted <= {snapshot.snapshot_id for snapshot in world.table().snapshots()}
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.parametrize("change", ["ADD COLUMN region string", "ADD PARTITION FIELD bucket(4, account)"])
def test_a_schema_or_spec_that_changed_with_the_commit_is_an_alarm(world_at: WorldAt, change: str) -> None:
    """A REST catalog does not assert them, so they are read again once the publication has landed."""
    world, run = world_at("validated", days=1)
    with arm("publish.after_commit", lambda: world.sql(f"ALTER TABLE {TABLE} {change}")):
        view = world.client.publish(run, as_="bo")
    assert view.state == "published"
    assert [told for told in view.warnings if "changed while snapshot" in told and "roll back if in doubt" in told]
