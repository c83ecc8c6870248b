"""Streams that read a corrected table: what the plan says, what waits for them, and how they are repaired."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.commands.upkeep.evidence import export_evidence
from errata.delivery.payment import pay
from errata.errors import PermissionRefused, PlanRefused, StateRefused
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.model.audit import Actor
from support.memory_world import MemoryWorld
from support.stream_model import MemoryReader
from support.world import PRODUCT, PRODUCT_FILE, TABLE

Make = Callable[..., MemoryWorld]
NEW = "2026-01-09"
WAVES = PRODUCT_FILE.replace("rollback_window: 30d", "rollback_window: 30d, waves: {size: 1, pause: 1h}")


def declare(on_replace: str, **keys: str) -> str:
    """A stream in errata.yaml."""
    told = {"kind": "iceberg-stream", "reads": f"[{PRODUCT}]", "checkpoint": "cp", "on_replace": on_replace} | keys
    return "consumers:\n  fraud: {" + ", ".join(f"{key}: {value}" for key, value in told.items()) + "}\n"


def make_reader(make_world: Make, on_replace: str, **options: Any) -> tuple[MemoryWorld, MemoryReader]:
    """A world with a reader that has read everything."""
    keys = options.pop("keys", {})
    world = make_world(days=2, project=declare(on_replace, **keys), **options)
    reader = MemoryReader(world, world.root / "cp")
    reader.begin()
    return world, reader


def deliver(world: MemoryWorld) -> None:
    """Pay what is owed, as if the time of every item had come."""
    actor = Actor("ana", "ana", "host")
    world.ledger.outbox.retry([one.item_id for one in world.ledger.outbox.list_open()], actor)
    pay(world.workspace, actor)


def find_verdicts(plan: Any) -> list[tuple[str, str]]:
    return [(one.level, one.message) for one in plan.verdicts if one.rule == "streaming-readers"]


def move(world: MemoryWorld, reader: MemoryReader) -> Any:
    """Do what ``consumers check`` shows: start the reader on the copy, and confirm; returns the answer."""
    shown = next(one for one in world.client.check_consumers(PRODUCT).consumers if one.name == "fraud")
    assert shown.run_id is not None
    (start,) = [step for step in shown.steps if "checkpointLocation" in step]
    reader.checkpoint = Path(start.partition("checkpointLocation ")[2].partition(",")[0].partition(":")[0])
    if not reader.checkpoint.is_absolute():
        reader.checkpoint = world.root / reader.checkpoint
    reader.run()
    return world.client.confirm_consumer(shown.run_id, "fraud", as_="ana")


def test_the_plan_says_that_a_stream_stops_and_where_it_is(make_world: Make) -> None:
    """Before anybody approves: what happens, what was not read yet, and what will be done; the record keeps it."""
    world, _ = make_reader(make_world, "rewind")
    world.live(NEW)
    plan = world.plan()
    ((level, told),) = find_verdicts(plan)
    assert level == "warn"
    for words in ("stops at the overwrite snapshot", "1 append unread", "Trigger.AvailableNow", "repaired copy"):
        assert words in told
    assert find_verdicts(world.client.show(plan.id)) == find_verdicts(plan)


@pytest.mark.parametrize("available", [False, True])
def test_a_repaired_reader_reads_every_row_once(make_world: Make, available: bool) -> None:
    """What it had not read, then what came after the publication; the old checkpoint is untouched."""
    world, reader = make_reader(make_world, "rewind")
    reader.available_now = available
    world.live(NEW, "unread")
    run = world.to("published")
    assert reader.run()
    old, had = reader.files(), list(reader.rows)
    assert world.client.status(run).state == "published"
    world.live(NEW, "after")
    deliver(world)
    assert move(world, reader).steps, "it has read what was left, and the next copy is ready"
    assert reader.rows == [*had, (NEW, "unread")]
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    (sql,) = [step for step in shown.steps if "SELECT" in step]
    assert "`day` >= DATE'2026-01-01' AND `day` < DATE'2026-01-03'" in sql
    assert any("_for_fraud" in ref for ref in world.refs())
    done = move(world, reader)
    assert done.is_done
    assert reader.rows == [*had, (NEW, "unread"), (NEW, "after")]
    world.live(NEW, "later")
    assert not reader.run()
    assert reader.rows[-1] == (NEW, "later")
    assert len(reader.rows) == len(set(reader.rows))
    assert MemoryReader(world, world.root / "cp").files() == old
    assert not any("_for_fraud" in ref for ref in world.refs()), "what was handed over is no longer kept"
    (item,) = world.ledger.outbox.list(run_id=run)
    assert (item.state, item.consumer) == ("paid", "fraud")


def test_the_proof_is_on_the_record(make_world: Make) -> None:
    """Range before, range after, and that nothing lies between them, in the audit log that the evidence has."""
    world, reader = make_reader(make_world, "rewind")
    before = reader._line()[-1].snapshot_id
    run = world.to("published")
    after = world.live(NEW)
    deliver(world)
    move(world, reader)
    paid = [one for one in world.client.audit_log(run) if one.action == "outbox.paid"]
    (step,) = paid[-1].body["result"]["steps"]
    proof = step["proof"]
    assert (proof["before"]["snapshot_id"], proof["before"]["position"]) == (before, 2)
    assert (proof["after"]["snapshot_id"], proof["after"]["position"]) == (after, 0)
    assert (proof["files_missed"], proof["files_read_twice"]) == (0, 0)
    assert proof["passed"] == [one.snapshot_id for one in reader._line() if one.operation == "overwrite"]


def test_without_an_append_the_repair_waits_and_says_so(make_world: Make) -> None:
    """Nothing is prepared, nothing fails."""
    world, _ = make_reader(make_world, "rewind")
    run = world.to("published")
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    assert "no rows were appended after the publication yet" in shown.waits
    (item,) = world.ledger.outbox.list(run_id=run)
    assert item.state == "owed"
    with pytest.raises(StateRefused, match="no rows were appended"):
        world.client.confirm_consumer(run, "fraud", as_="ana")


def test_a_reader_that_still_runs_is_not_confirmed(make_world: Make) -> None:
    """A copy is worth nothing once the old checkpoint moves: what is read there would be read again."""
    world, reader = make_reader(make_world, "rewind")
    run = world.to("published")
    world.live(NEW)
    deliver(world)
    with pytest.raises(StateRefused, match="nothing shows that the reader was started"):
        world.client.confirm_consumer(run, "fraud", as_="ana")
    (world.root / "cp/commits/7").write_bytes(b"v1\n{}")
    (world.root / "cp/offsets/7").write_bytes((world.root / "cp/offsets/1").read_bytes())
    with pytest.raises(StateRefused, match="has changed since it was copied"):
        move(world, reader)
    (item,) = world.ledger.outbox.list(run_id=run)
    assert item.state == "owed"


def test_confirming_a_reader_pays_only_what_is_owed_to_it(make_world: Make) -> None:
    """A dashboard that does not answer would use up the time, and the steps that are done would be shown again."""
    world, reader = make_reader(make_world, "rewind")
    world.configure("consumers:\n", "consumers:\n  board: {reads: [fin.sales], refresh: [{command: [./slow.sh]}]}\n")
    world.engines.consumers.broken = "down"
    run = world.to("published")
    world.live(NEW)
    deliver(world)
    world.ledger.outbox.retry([one.item_id for one in world.ledger.outbox.list_open()], Actor("ana", "ana", "host"))
    before = {item.consumer: item for item in world.ledger.outbox.list(run_id=run)}
    done = move(world, reader)
    assert (done.is_done, done.steps, done.warnings) == (True, (), ())
    after = {item.consumer: item for item in world.ledger.outbox.list(run_id=run)}
    assert after["board"] == before["board"]


def test_steps_that_were_confirmed_are_not_shown_again(make_world: Make) -> None:
    """Somebody else is paying at this moment: the confirmation is on record, and what is left is to deliver."""
    world, reader = make_reader(make_world, "rewind")
    run = world.to("published")
    world.live(NEW)
    deliver(world)
    (item,) = world.ledger.outbox.list(run_id=run)
    with arm("deliver.before_pay", lambda: confirmed.append(move(world, reader))):
        confirmed: list[Any] = []
        deliver(world)
    assert (confirmed[0].is_done, confirmed[0].steps) == (False, (f"errata deliver {run}",))
    deliver(world)
    assert world.ledger.outbox.get(item.item_id).state == "paid"


def test_a_rollback_is_passed_like_the_publication(make_world: Make) -> None:
    """Both are handed over as the table is after the last of them: what was rolled back is never handed out."""
    world, reader = make_reader(make_world, "rewind")
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    back = world.snapshot()
    world.live(NEW)
    deliver(world)
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    (tag,) = [ref for ref in world.refs() if "_for_fraud" in ref]
    assert any(f"VERSION AS OF '{tag}'" in step for step in shown.steps)
    assert world.table.metadata.refs[tag].snapshot_id == back
    assert move(world, reader).is_done
    assert {item.state for item in world.ledger.outbox.list(run_id=run)} == {"paid"}


def test_a_killed_payer_prepares_the_same_copy_again(make_world: Make) -> None:
    """The copy was written and not recorded: the next payer writes it again, and there is one."""
    world, _ = make_reader(make_world, "rewind")
    world.to("published")
    world.live(NEW)

    def die() -> None:
        raise KeyboardInterrupt

    with arm("deliver.after_pay", die), pytest.raises(KeyboardInterrupt):
        deliver(world)
    (copy,) = world.root.glob("cp.errata-*")
    before = {one: one.read_bytes() for one in copy.rglob("*") if one.is_file()}
    deliver(world)
    assert {one: one.read_bytes() for one in copy.rglob("*") if one.is_file()} == before
    assert len(list(world.root.glob("cp.errata-*"))) == 1


def test_a_retry_leaves_the_copy_alone_that_a_reader_was_started_on(make_world: Make) -> None:
    """Its progress is forgotten, the copy is not: the same steps are shown again, and the reader is confirmed."""
    world, reader = make_reader(make_world, "rewind")
    run = world.to("published")
    world.live(NEW)
    deliver(world)
    (copy,) = world.root.glob("cp.errata-*")
    reader.checkpoint = copy
    assert not reader.run()
    moved = reader.files()
    deliver(world)
    assert reader.files() == moved
    assert world.client.confirm_consumer(run, "fraud", as_="ana").is_done


def test_the_evidence_of_a_repair_verifies(make_world: Make) -> None:
    """Confirmations and their proofs are entries of the audit log like all others."""
    world, reader = make_reader(make_world, "rewind")
    generate_key_pair(world.root / "errata.key")
    world.configure("limits:", "evidence: {key: errata.key}\nlimits:")
    run = world.to("published")
    world.live(NEW)
    deliver(world)
    assert move(world, reader).is_done
    _, bundle = export_evidence(world.workspace, Actor("bo", "u", "h"), run)
    assert verify(bundle, [(world.root / "errata.key.pub").read_bytes()]).problems == []


def test_what_others_overwrote_is_never_passed(make_world: Make) -> None:
    """Nobody handed those rows to the reader; the item says which snapshot it is."""
    world, _ = make_reader(make_world, "rewind")
    run = world.to("published")
    world.remove_day(world.days[0])
    world.live(NEW)
    deliver(world)
    (item,) = world.ledger.outbox.list(run_id=run)
    assert item.state == "failed", "no further attempt can help"
    assert "Errata did not write it" in (item.last_error or "")
    assert list(world.root.glob("cp.errata-*")) == []


@pytest.mark.parametrize(
    "spoil, told",
    [
        (lambda cp: (cp / "metadata").unlink(), "no file metadata"),
        (lambda cp: [one.unlink() for one in cp.rglob("*") if one.is_file()], "was not found"),
        (lambda cp: (cp / "state/0").mkdir(parents=True) or (cp / "state/0/1.delta").touch(), "keeps state"),
        (lambda cp: (cp / "offsets/1").write_text("v9\n"), "offsets/1 has format 'v9'"),
    ],
)
def test_a_checkpoint_that_cannot_be_repaired_refuses_the_plan_by_name(
    make_world: Make, spoil: Callable[[Path], object], told: str
) -> None:
    """A repair that cannot be made is not promised; the finding names the reader and the reason."""
    world, reader = make_reader(make_world, "rewind")
    spoil(reader.checkpoint)
    with pytest.raises(PlanRefused, match=told) as refused:
        world.plan()
    assert "fraud" in refused.value.message
    assert f"errata consumers check {PRODUCT}" in (refused.value.hint or "")
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    assert (shown.effect, told in shown.why) == ("stops", True)


def test_a_publication_waits_until_a_reader_that_has_to_stop_is_stopped(make_world: Make) -> None:
    """Nobody said so: refused. Somebody said so and it still moves: refused. It is stopped: published."""
    world, reader = make_reader(make_world, "stop")
    run = world.to("validated")
    with pytest.raises(StateRefused, match="nobody has confirmed") as refused:
        world.client.publish(run, as_="bo")
    assert refused.value.hint == f"stop fraud, then errata consumers confirm {run} fraud"
    world.client.confirm_consumer(run, "fraud", as_="ana")
    world.live(NEW)
    assert not reader.run()
    with pytest.raises(StateRefused, match="its checkpoint has changed since ana confirmed"):
        world.client.publish(run, as_="bo")
    assert world.client.status(run).release is None, "what has to wait leaves no release behind"
    world.client.confirm_consumer(run, "fraud", as_="ana")
    assert world.client.publish(run, as_="bo").state == "published"


def test_only_the_owner_of_a_reader_confirms(make_world: Make) -> None:
    """A person or a team of the project; without one, an operator or a publisher."""
    world, _ = make_reader(make_world, "stop", keys={"owner": "bo"})
    run = world.to("validated")
    with pytest.raises(PermissionRefused, match="expected bo, the owner of the reader") as refused:
        world.client.confirm_consumer(run, "fraud", as_="ana")
    assert refused.value.hint == f"errata consumers confirm {run} fraud --as bo"
    assert world.client.confirm_consumer(run, "fraud", as_="bo").step == "stopped"


def test_an_override_lets_the_publication_go_without_the_reader(make_world: Make) -> None:
    """Named in the plan that was approved."""
    world, _ = make_reader(make_world, "stop")
    run = world.to("published", overrides={"streaming-readers": "fraud is switched off"})
    assert world.client.status(run).state == "published"


def test_skip_is_proven_by_what_the_reader_has_passed(make_world: Make) -> None:
    """Declared is not proven: a warning until the reader has passed an overwrite."""
    world, reader = make_reader(make_world, "skip")
    plan = world.plan()
    ((level, told),) = find_verdicts(plan)
    assert level == "warn"
    assert "streaming-skip-overwrite-snapshots" in told
    world.to("published")
    after = world.live(NEW)
    last = reader.files()["offsets/1"].decode().split("\n")
    line = json.loads(last[2]) | {"snapshot_id": int(after), "position": 1}
    (reader.checkpoint / "offsets/2").write_text("\n".join([*last[:2], json.dumps(line)]))
    (reader.checkpoint / "commits/2").write_bytes(reader.files()["commits/1"])
    ((level, told),) = find_verdicts(world.plan(reason="again"))
    assert level == "ok"
    assert "has passed overwrite snapshot" in told
    assert world.ledger.outbox.list() == ()


def test_waves_that_streams_would_meet_in_different_ways_are_refused(make_world: Make) -> None:
    """A wave with nothing to remove is an append: a stream would read it, and not its neighbours."""
    world = make_world(days=3, project=declare("rewind"), product=WAVES, history=False)
    world.write_history(world.days[:2])
    MemoryReader(world, world.root / "cp").begin()
    with pytest.raises(PlanRefused, match="the waves would reach streams in different ways") as refused:
        world.plan()
    assert world.days[2] in refused.value.message
    assert find_verdicts(world.plan(f"{world.days[0]}..{world.days[1]}"))[0][0] == "warn"
    assert find_verdicts(world.plan(world.days[2]))[0] == ("ok", "fraud: an append reaches a stream as new rows")


def test_a_part_of_a_run_is_not_published_in_another_way_than_the_rest(make_world: Make) -> None:
    """Partitions that are new would be an append, where the run is an overwrite."""
    world = make_world(days=3, project=declare("rewind"), history=False)
    world.write_history(world.days[:2])
    MemoryReader(world, world.root / "cp").begin()
    run = world.to("validated")
    with pytest.raises(StateRefused, match="published by an append, and the run is planned as an overwrite"):
        world.client.publish(run, partitions=[world.days[2]], as_="bo")
    assert world.client.publish(run, as_="bo").state == "published"


def test_other_consumers_are_in_the_check_and_in_the_plan(make_world: Make) -> None:
    """A dashboard that is refreshed, a job with a mark, and a reader of which nothing is known."""
    project = f"""consumers:
  board: {{reads: [{PRODUCT}], refresh: [{{command: [refresh, "{{partition}}"]}}]}}
  features: {{reads: [{PRODUCT}], kind: watermark, rerun: [again, "{{partition}}"]}}
  team: {{reads: [{PRODUCT}]}}
"""
    world = make_world(days=2, project=project)
    view = world.client.check_consumers(PRODUCT, partitions=world.days[0])
    assert [(one.name, one.effect) for one in view.consumers] == [
        ("board", "lags"), ("features", "misses"), ("team", "reads"),
    ]  # fmt: skip
    assert world.days[0] in view.consumers[1].why
    told = [one.message for one in world.plan().verdicts if one.rule == "consumers"]
    assert [line.partition(":")[0] for line in told] == ["board", "features", "team"]


def test_a_job_with_a_mark_misses_what_it_has_read(make_world: Make) -> None:
    """Only partitions up to its watermark: the others it reads anyway."""
    project = f"""warehouses:
  pg: {{type: postgres, uri: "postgresql://x/y"}}
consumers:
  features:
    reads: [{PRODUCT}]
    kind: watermark
    state: {{on: pg, table: etl, key: {{job: features}}, column: high_water}}
"""
    world = make_world(days=2, project=project)
    state = world.workspace.project.consumers["features"].state
    assert state is not None
    told = {}
    for mark in ("2025-12-31", world.days[0], world.days[1]):
        world.engines.watermarks.put(state, mark)
        (one,) = world.client.check_consumers(PRODUCT, partitions=list(world.days)).consumers
        told[mark] = (one.effect, one.why)
    assert told["2025-12-31"][0] == "reads"
    assert told[world.days[0]] == ("misses", f"does not read {world.days[0]} again: its watermark is {world.days[0]}")
    assert told[world.days[1]][0] == "misses"
    assert world.days[0] in told[world.days[1]][1]


def test_a_mode_that_leaves_the_table_alone_leaves_streams_alone(make_world: Make) -> None:
    """Corrections are written beside it, so that nothing is owed and nothing is waited for."""
    product = PRODUCT_FILE.replace("mode: replace_partitions", f"mode: corrections, corrections: {TABLE}_corrections")
    world, _ = make_reader(make_world, "stop", product=product)
    assert [one.effect for one in world.client.check_consumers(PRODUCT).consumers] == ["untouched"]
    assert find_verdicts(world.plan()) == [("ok", f"fraud: {TABLE} is not changed")]
