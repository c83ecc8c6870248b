"""Chunks: what they may write, what they run, and what happens to one that fails."""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import RunFailed, StateRefused, UsageError, ValidationRejected
from spark.test_shapes import BY_ACCOUNT
from support.world import TABLE, TRANSFORM, World, write_raw
from support.worlds import WorldAt

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own


def test_a_failing_chunk_is_named_and_the_others_go_on(world_at: WorldAt) -> None:
    """The error carries chunk, partitions and cause; after the cause is mended only that chunk is computed again."""
    transform = TRANSFORM + (
        "\n_build = build\n\n\ndef build(ctx, raw):\n"
        "    if ctx.partitions[0] == '2026-01-02':\n        raise ValueError('bad day')\n    return _build(ctx, raw)\n"
    )
    world, run = world_at("approved", days=3, chunk_bytes=ONE_DAY, transform=transform)
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    view = failed.value.fields["run"]
    assert (view.chunks.done, view.chunks.failed) == (2, 1)
    assert view.failures[0]["partitions"] == ["2026-01-02"]
    assert "bad day" in view.failures[0]["error"]
    with pytest.raises(StateRefused):
        world.client.validate(run, as_="ana")


def test_a_chunk_that_writes_another_partition_fails(world_at: WorldAt) -> None:
    """Its output is not adopted, whatever it appended."""
    transform = TRANSFORM.replace(
        'F.count("*").alias("n"))', 'F.count("*").alias("n")).withColumn("day", F.date_add("day", 1))'
    )
    world, run = world_at("approved", days=2, transform=transform)
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    assert failed.value.fields["run"].failures[0]["code"] == "foreign-partition"
    assert world.rows() == world.wrong()


def test_code_edited_after_planning_does_not_change_what_runs(world_at: WorldAt) -> None:
    """Workers import the zip that was planned."""
    world, run = world_at("approved", days=1)
    (world.root / "transforms/sales.py").write_text("def build(ctx, raw):\n    raise SystemExit('edited')\n")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_python_workers_run_the_planned_code_as_well(world_at: WorldAt, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper of a Python UDF, edited after planning, is not picked up from the working directory."""
    transform = TRANSFORM + (
        "\n_build = build\n\n\ndef same(n):\n    return n\n\n\ndef build(ctx, raw):\n"
        "    return _build(ctx, raw).withColumn('n', F.udf(same, 'bigint')('n'))\n"
    )
    world, run = world_at("approved", days=1, transform=transform)
    edited = transform.replace("return n\n", "raise ValueError('edited after approval')\n")
    (world.root / "transforms/sales.py").write_text(edited)
    monkeypatch.chdir(world.root)
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


def test_a_transform_that_exits_fails_its_chunk(world_at: WorldAt) -> None:
    """``sys.exit`` in a transform is a failure like any other, and not the end of the worker."""
    world, run = world_at("approved", days=1, transform="import sys\n\n\ndef build(ctx, raw):\n    sys.exit(0)\n")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    assert failed.value.fields["run"].failures[0]["code"] == "transform-failed"


@pytest.mark.parametrize("what", ["changed", "missing"])
def test_a_source_file_that_is_not_the_planned_one_fails_its_chunk_by_name(world_at: WorldAt, what: str) -> None:
    """Only the chunk that reads it fails; restored and retried, the run goes on."""
    world, run = world_at("approved", days=2, chunk_bytes=ONE_DAY)
    place = world.root / f"raw/day={world.days[0]}/part-0.parquet"
    kept, stat = place.read_bytes(), place.stat()
    if what == "missing":
        place.unlink()
    else:
        write_raw(world.root, world.days[0], 4)
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    view = failed.value.fields["run"]
    assert view.chunks.done == 1
    assert "part-0.parquet" in view.failures[0]["error"]
    place.write_bytes(kept)
    os.utime(place, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    world.client.retry(run, as_="ana")
    assert world.client.run(run, as_="ana").state == "staged"


def test_a_run_interrupted_between_chunks_goes_on_and_an_unwritten_chunk_blocks_the_candidate(
    world_at: WorldAt,
) -> None:
    """``--max-chunks`` stops early; the candidate needs every chunk; completed chunks are not computed again."""
    world, run = world_at("approved", days=3, chunk_bytes=ONE_DAY)
    assert world.client.run(run, max_chunks=1, as_="ana").chunks.done == 1
    with pytest.raises(StateRefused):
        world.client.validate(run, as_="ana")
    view = world.client.run(run, as_="ana")
    assert (view.state, view.chunks.done, view.recomputed) == ("staged", 3, 0)


def test_a_partition_whose_right_answer_is_empty_is_emptied_with_consent(make_world: Make) -> None:
    """Without ``--accept empty=…`` the gate rejects; with it the old rows go."""
    world = make_world(days=2)
    schema = pa.schema([("account", pa.string()), ("amount", pa.decimal128(12, 2))])
    pq.write_table(schema.empty_table(), world.root / f"raw/day={world.days[0]}/part-0.parquet")
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    with pytest.raises(UsageError):
        world.client.validate(run, accept={"nonsense": "x"}, as_="bo")
    assert world.client.validate(run, accept={"empty": "no sales that day"}, as_="bo").passed
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected([world.days[1]])
    assert world.days[0] not in world.files()


def test_zombie_output_is_never_adopted(world_at: WorldAt) -> None:
    """Rows that someone appended to the run branch under no adopted attempt do not reach the candidate."""
    world, run = world_at("staged", days=2)
    world.sql(f"INSERT INTO {TABLE}.`branch_errata_{run}` VALUES (date'{world.days[0]}', 'zombie', 1, 1, null, null)")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


BROKEN = {
    "divides by zero": ('withColumn("n", F.expr("bigint(1 / (n - n))"))', "DIVIDE_BY_ZERO"),
    "a function raises": ('withColumn("n", F.udf(lambda n: [][n], "bigint")("n"))', ":6: IndexError: list index out"),
    "the code itself raises": ("nothing_of_the_kind()", "AttributeError: [ATTRIBUTE_NOT_SUPPORTED]"),
    "it returns no frame": ("show()", "TypeError: the transform returned NoneType; expected a DataFrame"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_error_of_the_transform_is_told_as_its_own(world_at: WorldAt, name: str) -> None:
    """Wherever it comes to light, in Python, in a worker or in Spark, and it is not tried again."""
    call, cause = BROKEN[name]
    world, run = world_at("approved", days=1, transform=TRANSFORM.rstrip() + f".{call}\n")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    failure = failed.value.fields["run"].failures[0]
    assert failure["code"] == "transform-failed"
    assert cause in failure["error"]
    if ":6: " in cause:  # the user's own line, with its source
        assert "failed in transforms/sales.py:6: " in failure["error"]
        assert f'alias("n")).{call}' in failure["error"].splitlines()[-1]
    assert f"--supersede {run}" in str(failed.value.hint)
    assert f"{run} chunk" in world.engines.log.read_text(), "the whole traceback is in the log"


def test_an_error_of_iceberg_is_not_blamed_on_the_transform(make_world: Make) -> None:
    """Iceberg 1.11 fails while it plans a scan for IN on a text column beside a NULL partition: the engine's defect."""
    transform = "def build(ctx, raw):\n    return raw.where(raw.account.isin('a0', 'a1'))\n"
    world = make_world(
        days=1, spec="account", product=BY_ACCOUNT, transform=transform, project="chunks: {attempts: 1}\n"
    )
    world.sql(
        "CREATE TABLE lake.fin.events (day date, account string, gross decimal(12,2), n bigint) USING iceberg "
        "PARTITIONED BY (account)"
    )
    rows = ", ".join(f"(date'2026-01-01', {account}, 5, 1)" for account in ("'a0'", "'a1'", "null"))
    world.sql(f"INSERT INTO lake.fin.events VALUES {rows}")
    run = world.to("approved", "null,a0")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    failure = failed.value.fields["run"].failures[0]
    assert failure["code"] == "engine"
    assert "in the engine and not in the transform: java.lang.NullPointerException" in str(failure)
