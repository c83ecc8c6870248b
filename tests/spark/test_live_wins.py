"""Live wins: what live wrote after the plan is pinned and computed again, and nothing else is."""

from __future__ import annotations

import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import ApprovalRefused, PublishConflict, Rebased
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.live_writers import rebase as rebasing
from protocol.test_conflicts import once
from support.attached import start
from support.world import PRODUCT_FILE, TABLE, World
from support.worlds import WorldAt
from unit.evidence.forging import unpacked

Make = Callable[..., World]
WINS = PRODUCT_FILE.replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins")


def late(world: World, day: str, account: str = "late") -> None:
    """A live row, committed to the source and, doubled as ever, to the target."""
    place = world.root / f"raw/day={day}/{account}.parquet"
    amounts = pa.array([Decimal("5.00")], pa.decimal128(12, 2))
    pq.write_table(pa.table({"account": [account], "amount": amounts}), place)
    world.live(day, account, "10.00")


@pytest.mark.parametrize(
    "moment", [pytest.param(name, marks=pytest.mark.slow) for name in ("staged", "validated")] + ["committing"]
)
def test_a_live_row_in_source_and_target_after_the_plan_is_in_the_result(make_world: Make, moment: str) -> None:
    """Its partition is computed again, once; the others keep the files of their first attempt."""
    world = make_world(days=3, product=WINS, project='evidence: {key: "errata.key"}\n')
    public = generate_key_pair(world.root / "errata.key").pem
    hit, others = world.days[1], (world.days[0], world.days[2])
    run = world.to("staged" if moment == "staged" else "validated")
    before = world.rows()
    if moment == "staged":
        late(world, hit)
        with pytest.raises(Rebased) as rebased:
            world.client.validate(run, as_="ana")
    else:
        first = world.client.status(run).release_digest
        world.client.release(run, digest=first, as_="bo")
        if moment == "validated":
            late(world, hit)
        write = once(lambda: late(world, hit)) if moment == "committing" else (lambda: None)
        with arm("publish.before_commit", write), pytest.raises(Rebased) as rebased:
            world.client.publish(run, as_="bo")
    assert rebased.value.exit_code == 5
    assert rebased.value.fields["partitions"] == [hit]
    assert [row for row in world.rows() if row[1] != "late"] == before
    ledger = world.ledger
    staged = ledger.progress.chunks(run)[0].snapshot_id
    assert world.client.status(run).state == "running"
    world.client.run(run, as_="ana")
    view = world.client.validate(run, as_="ana")
    assert view.passed
    if moment != "staged":
        status = world.client.status(run)
        assert status.release_digest != first
        assert status.release is not None
        assert not status.release.valid, "what was released is not what there is now"
    world.client.publish(run, as_="bo")
    assert (hit, "late", Decimal("5.00"), 1) in world.rows()
    assert world.rows() == world.expected()
    computed = [(one.chunk_id, one.partitions, one.state.value) for one in ledger.progress.attempts(run)]
    assert [set(partitions) for _, partitions, _ in computed] == [set(world.days), {hit}]
    assert all(state == "adopted" for *_, state in computed)
    added = {path for path in world.files(int(staged or 0)).values() for path in path}
    assert set().union(*(world.files()[day] for day in others)) <= added
    assert not world.files()[hit] & added
    (told,) = world.client.status(run).rebases
    assert (told["n"], told["written"], told["partitions"]) == (1, [hit], [hit])
    assert world.client.why(TABLE, hit).history[-1].rebased == told["base_snapshot_id"]
    assert world.client.why(TABLE, others[0]).history[-1].rebased is None
    assert not {ref for ref in world.refs() if "_r1_" in ref}, "its pins go with the others"
    _, bundle = world.client.evidence(run, with_diff=False, as_="bo")
    assert verify(bundle, [public]).problems == []
    assert {f"parts/{told[part]}.json" for part in ("expected_part", "pins_part")} <= set(unpacked(bundle))
    world.client.rollback(run, reason="undo", as_="bo")
    assert [row for row in world.rows() if row[1] != "late"] == before
    assert (hit, "late", Decimal("10.00"), 1) in world.rows()


@pytest.mark.slow
def test_live_wins_a_few_times_and_then_it_is_a_conflict(world_at: WorldAt, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds per run, the error says so and names the freeze; the other partitions can go out."""
    world, run = world_at("staged", days=2, product=WINS)
    monkeypatch.setattr(rebasing, "MAX_REBASES", 1)
    late(world, world.days[0])
    with pytest.raises(Rebased):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    late(world, world.days[1], "later")
    with pytest.raises(PublishConflict, match="live won 1 times") as conflict:
        world.client.publish(run, as_="bo")
    assert not isinstance(conflict.value, Rebased)
    assert "on_live_write: freeze" in (conflict.value.hint or "")
    assert "errata plan fin.sales" in (conflict.value.hint or "")
    assert world.client.status(run).state == "validated"
    assert world.client.publish(run, partitions=[world.days[0]], as_="bo").state == "part_published"
    with pytest.raises(PublishConflict, match="live won"):
        world.client.publish(run, as_="bo")


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("rebase.after_record", marks=pytest.mark.slow),
        pytest.param("rebase.before_record", marks=pytest.mark.slow),
        pytest.param("rebase.after_pin", marks=pytest.mark.slow),
    ],
)
def test_killed_while_live_wins_the_next_commands_go_on(world_at: WorldAt, point: str) -> None:
    """Recorded as a whole or not at all: one rebase, its pins, one more chunk, one publication."""
    world, run = world_at("validated", days=2, product=WINS)
    late(world, world.days[0])
    place = ("-C", str(world.root), "--as", "bo")
    process = start(world.spark, *place, "publish", run, "--yes", ERRATA_FAILPOINTS=f"{point}=kill")
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, error
    if point == "rebase.before_record":
        assert world.client.status(run).state == "validated"
        with pytest.raises(Rebased):
            world.client.publish(run, as_="bo")
    world.client.run(run, as_="ana")
    assert {f"errata_{run}_r1_base"} == {ref for ref in world.refs() if "_r1_" in ref}
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    assert len(world.client.status(run).rebases) == 1


@pytest.mark.slow
def test_from_a_table_merged_by_key_the_live_row_is_merged_on_what_live_left(make_world: Make) -> None:
    """The base and the input are those of after the live write, for that partition alone."""
    product = WINS.replace("mode: replace_partitions", "mode: merge").replace(
        'files: "raw/day={day}/*.parquet"', "table: lake.fin.raw"
    )
    world = make_world(days=2, product=product.replace("reconcile:", "compare: []\nreconcile:"))
    world.sql(
        "CREATE TABLE lake.fin.raw (day date, account string, amount decimal(12,2)) USING iceberg PARTITIONED BY (day)"
    )
    for day, account, gross, _ in world.expected():
        world.sql(f"INSERT INTO lake.fin.raw VALUES (date'{day}', '{account}', {gross})")
    run = world.to("validated")
    hit, other = world.days
    world.sql(f"INSERT INTO lake.fin.raw VALUES (date'{hit}', 'late', 5.00), (date'{other}', 'unseen', 7.00)")
    world.live(hit, "late", "10.00")
    world.live(hit, "only-live", "3.00")
    with pytest.raises(Rebased):
        world.client.publish(run, as_="bo")
    assert [row[1] for row in world.rows() if row[0] == hit][-2:] == ["late", "only-live"]
    world.client.run(run, as_="ana")
    with pytest.raises(Exception, match="gross"):
        # a row that only live has is in no source: the gate says so, as it would for any merge
        world.client.validate(run, as_="ana")
    found = {row[:2] for row in world.rows(int(_candidate(world, run)))}
    assert {(hit, "late"), (hit, "only-live")} <= found
    assert (other, "unseen") not in found, "a partition that live did not write keeps its pins"


def _candidate(world: World, run: str) -> str:
    newest = world.ledger.candidates.latest(run)
    assert newest is not None
    return newest.snapshot_id or ""


@pytest.mark.slow
def test_where_rows_are_counted_by_chunk_the_whole_chunk_is_computed_again(world_at: WorldAt) -> None:
    """The books balance again: rows in, used and quarantined of every partition, as pinned now."""
    rules = '    partition: day\n    rows:\n      - {name: negative, expression: "amount < 0", action: quarantine}\n'
    world, run = world_at("validated", days=2, product=WINS.replace("    partition: day\n", rules, 1))
    late(world, world.days[0])
    with pytest.raises(Rebased) as rebased:
        world.client.publish(run, as_="bo")
    assert rebased.value.fields["partitions"] == list(world.days)
    world.client.run(run, as_="ana")
    assert world.client.validate(run, as_="ana").passed
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_compaction_after_a_rebase_is_no_conflict_and_a_service_needs_a_new_release(make_world: Make) -> None:
    """What is expected since is what the rebase found, explained from there."""
    people = "  bot: {roles: [operator, publisher], service: true}\n"
    world = make_world(days=2, product=WINS, properties={"write.distribution-mode": "none"})
    world.configure("limits:", f"{people}limits:".replace("  bot", "  bot"))
    run = world.to("validated")
    digest = world.client.status(run).release_digest
    world.client.release(run, digest=digest, as_="bo")
    late(world, world.days[0])
    with pytest.raises(Rebased):
        world.client.publish(run, as_="bot")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('min-input-files','2'))")
    with pytest.raises(ApprovalRefused, match="no longer counts"):
        world.client.publish(run, as_="bot")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    assert world.days[0] in world.client.publish(run, as_="bot").compacted
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_run_and_validate_in_one_go_until_live_lets_them(world_at: WorldAt, tmp_path: Path) -> None:
    """``errata run --validate`` computes again by itself; nobody has to type anything twice."""
    import io

    import errata
    from errata.cli.app.session import CliEnvironment as Terminal
    from errata.cli.main import main

    world, run = world_at("approved", days=2, product=WINS)
    err = io.StringIO()
    terminal = Terminal(
        open_project=lambda _, **options: errata.open(str(world.root), spark=world.spark, narrate=world.said.append),
        out=io.StringIO(),
        err=err,
        interactive=False,
    )
    with arm("run.before_staged", once(lambda: late(world, world.days[0]))):
        assert main(["-C", str(world.root), "--as", "ana", "run", run, "--validate"], terminal) == 0
    assert "live wins: 2026-01-01 is pinned again" in err.getvalue()
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_live_wins_where_partitions_share_files(world_at: WorldAt) -> None:
    """Content tells which day was written; the shared files of the others are no reason to compute those again."""
    world, run = world_at("validated", days=3, product=WINS, spec="")
    late(world, world.days[1])
    with pytest.raises(Rebased) as rebased:
        world.client.publish(run, as_="bo")
    assert rebased.value.fields["partitions"] == [world.days[1]]
    world.client.run(run, as_="ana")
    assert world.client.validate(run, as_="ana").passed
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
