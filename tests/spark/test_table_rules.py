"""Rules of the Iceberg adapter that only a real table can show: what is written, kept, counted and looked at again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from errata.errors import EngineError
from errata.failpoints import arm
from errata.model.refs import candidate_branch, run_branch, undo_branch
from errata.publisher.ports import PublicationCommit
from support.world import TABLE, World

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
EXPIRE = (
    "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
)


def test_chunks_are_written_in_order_of_their_partitions_and_not_with_a_file_open_for_each(make_world: Make) -> None:
    """Without fanout Iceberg asks for rows sorted by partition, so the plan of the write sorts by day."""
    world = make_world(days=2)
    world.to("staged")
    store = world.spark._jsparkSession.sharedState().statusStore()
    runs = store.executionsList()
    plans = [str(runs.apply(n).physicalPlanDescription()) for n in range(runs.size())]
    write = next(plan for plan in reversed(plans) if "AppendData" in plan and "Aggregate" in plan)
    assert re.search(r"Sort.*\nInput.*\nArguments: \[day#\d+ ASC NULLS FIRST\], false", write), write


def test_an_expiry_keeps_every_snapshot_of_a_run_branch(make_world: Make) -> None:
    """Adopted attempts are old snapshots of the branch; an expiry that keeps one per branch leaves them all."""
    world = make_world(days=3, chunk_bytes=ONE_DAY)
    run = world.to("staged")
    adopted = {int(chunk.snapshot_id or 0) for chunk in world.client._desk.ledger.chunks(run)}
    assert len(adopted) == 3
    world.sql(EXPIRE)
    assert adopted <= {snapshot.snapshot_id for snapshot in world.table().snapshots()}
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_what_does_not_balance_is_neither_a_candidate_nor_a_publication(make_world: Make) -> None:
    """A path that is not staged, or not live, is refused before anything is committed."""
    world = make_world(days=2)
    run = world.to("validated")
    engines, target = world.client._desk.engines, world.client._desk.ledger.manifest(run).target
    staged = [path for paths in world.files(world.table().metadata.refs[run_branch(run)].snapshot_id).values()
              for path in paths]  # fmt: skip
    head, refs = world.snapshot(), world.refs()
    with pytest.raises(EngineError, match=r"2 of 3 staged files"):
        engines.staging.make_candidate(target, run, candidate_branch(run, 9), world.days, [*staged, "file:/no"], 7)
    live = [path for paths in world.files().values() for path in paths]
    commit = PublicationCommit(
        publication_id=f"{run}-p9", run_id=run, manifest_digest="", partitions=world.days, remove=(*live, "file:/no"),
        add=tuple(staged), add_from=(str(world.table().metadata.refs[run_branch(run)].snapshot_id),), keep_refs={},
        pre_days=3, properties={"errata.publication": f"{run}-p9"},
    )  # fmt: skip
    with pytest.raises(EngineError, match=r"2 of 3 files to remove"):
        engines.publishing.version(target).commit(commit)
    more = replace(commit, remove=tuple(live), add=(*staged, "file:/no"))
    with pytest.raises(EngineError, match=r"2 of 3 files to add"):
        engines.publishing.version(target).commit(more)
    assert (world.snapshot(), world.refs()) == (head, refs)


def test_an_undo_branch_that_is_written_again_holds_the_second_set_alone(make_world: Make) -> None:
    """A second try takes out other files; what the first one kept would come back with a rollback."""
    world = make_world(days=2)
    run = world.to("planned")
    publishing, target = world.client._desk.engines.publishing, world.client._desk.ledger.manifest(run).target
    head, files, pub = str(world.snapshot()), world.files(), f"{run}-p1"
    for day in world.days:
        publishing.write_undo(target, pub, head, world.days, sorted(files[day]), 30)
    kept = world.files(world.table().metadata.refs[undo_branch(pub)].snapshot_id)
    assert kept == {world.days[1]: files[world.days[1]]}


def test_a_delete_file_of_another_spec_touches_every_partition(make_world: Make) -> None:
    """An equality delete under no partition applies to all of the table, whatever the current spec says."""
    world = make_world(days=2)
    run = world.to("planned")
    java, target = world.client._desk.engines.java, world.client._desk.ledger.manifest(run).target
    base = world.snapshot()
    java.load(TABLE).updateSpec().removeField("day").commit()
    table = java.load(TABLE)
    fields = java._gateway.new_array(java.jvm.int, 1)
    fields[0] = table.schema().findField("account").fieldId()
    delete = java.jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(fields)
    delete = delete.withPath(f"{table.location()}/data/eq.parquet").withFileSizeInBytes(500).withRecordCount(1)
    table.newRowDelta().addDeletes(delete.build()).commit()
    java.load(TABLE).updateSpec().addField("day").commit()
    try:
        history = world.client._desk.engines.publishing.version(target).history(str(base), world.days)
    finally:  # no such file was ever written
        world.sql(f"CALL lake.system.rollback_to_snapshot('fin.sales', {base})")
    assert [commit.touches_everything for commit in history.commits] == [True]
    assert history.complete


@pytest.mark.parametrize("change", ["ADD COLUMN region string", "ADD PARTITION FIELD bucket(4, account)"])
def test_a_schema_or_spec_that_changed_with_the_commit_is_an_alarm(make_world: Make, change: str) -> None:
    """A REST catalog does not assert them, so they are read again once the publication has landed."""
    world = make_world(days=1)
    run = world.to("validated")
    with arm("publish.after_commit", lambda: world.sql(f"ALTER TABLE {TABLE} {change}")):
        view = world.client.publish(run, as_="bo")
    assert view.state == "published"
    assert [told for told in view.warnings if "changed while snapshot" in told and "roll back if in doubt" in told]
