from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from errata.canonical import canonical_bytes, from_plain, sha256
from errata.model.change_log.declaration import ChangeCapture
from errata.model.manifest import ExpectedFile, Manifest, Override, SourceFile
from errata.model.product import Input
from errata.model.refs import input_tags
from errata.planning.build import Plan, build_run_id
from errata.planning.estimate import count_cores
from errata.ports.tables import ActiveRun, InputState, PartitionSize, TargetState
from unit.planning.worlds import DAYS, INPUTS, MB, NOW, PRODUCT, PROJECT, TARGET, ask, levels, plan


def sealed(made: Plan) -> Manifest:
    assert made.manifest is not None
    return made.manifest


def test_the_same_request_on_the_same_world_gives_the_same_bytes():
    """Neither the clock nor the order in which facts were gathered is in the manifest."""

    def backwards(facts: InputState) -> InputState:
        return replace(facts, partitions=dict(reversed(facts.partitions.items())))

    first = plan()
    shuffled: TargetState = replace(
        TARGET,
        partitions=dict(reversed(TARGET.partitions.items())),
        expected=dict(reversed(TARGET.expected.items())),
    )
    inputs = {name: backwards(INPUTS[name]) for name in reversed(INPUTS)}
    later = plan(target=shuffled, inputs=inputs, now=NOW + timedelta(days=9))
    assert later.content == first.content
    assert later.digest == first.digest == sha256(first.content)
    assert later.run_id != first.run_id


def test_any_change_of_the_world_changes_the_digest():
    """A file, a snapshot, a reason, a scope: each gives another manifest."""
    other_file = replace(INPUTS["transactions"], files=INPUTS["transactions"].files | {"2026-01-01": ()})
    digests = [
        made.digest
        for made in (
            plan(),
            plan(ask(reason="another")),
            plan(ask(end="2026-01-09")),
            plan(ask(order="oldest")),
            plan(target=replace(TARGET, base_snapshot_id="1")),
            plan(inputs=INPUTS | {"transactions": other_file}),
            plan(inputs=INPUTS | {"fx_rates": replace(INPUTS["fx_rates"], snapshot_id="5")}),
            plan(ledger_id="another"),
        )
    ]
    assert len(set(digests)) == len(digests)


def test_a_manifest_reads_back_from_its_bytes():
    """The bytes hold everything the value holds."""
    made = plan(ask(canary=2, supersede="bf-0"))
    assert from_plain(Manifest, json.loads(made.content)) == json_shaped(sealed(made))
    assert made.run_id == build_run_id(PRODUCT.name, made.digest, NOW) == f"bf-20260301-daily-revenue-{made.digest[:8]}"


def json_shaped(manifest: Manifest) -> Manifest:
    return from_plain(Manifest, json.loads(canonical_bytes(manifest)))


def test_parts_are_named_by_their_digest_and_hold_the_lists():
    """Expected files per partition, and source files per partition of every file input."""
    made = plan()
    target, transactions = sealed(made).target, sealed(made).inputs[0]
    assert all(sha256(content) == digest for digest, content in made.parts.items())
    assert set(made.parts) == {target.expected_part, transactions.files_part}
    expected = from_plain(dict[str, tuple[ExpectedFile, ...]], json.loads(made.parts[target.expected_part]))
    assert expected == dict(TARGET.expected)
    files = from_plain(dict[str, tuple[SourceFile, ...]], json.loads(made.parts[transactions.files_part or ""]))
    assert files == dict(INPUTS["transactions"].files or {})


def test_chunks_count_each_input_byte_once():
    """Look-back is read again by the next chunk but does not make it bigger."""
    product = replace(PRODUCT, inputs=(PRODUCT.inputs[0], replace(PRODUCT.inputs[1], lookback="3d"), PRODUCT.inputs[2]))
    made = plan(ask(start="2026-01-10", end="2026-01-20"), product=product)
    assert sum(chunk.bytes for chunk in made.chunks) == 10 * 101 * MB
    assert [len(chunk.partitions) for chunk in made.chunks] == [5, 5]
    assert made.chunks[0].partitions[0] == "2026-01-19"
    adjustments = sealed(made).inputs[1]
    assert (adjustments.lookback, adjustments.input_partitions[0]) == (3, "2026-01-07")
    assert made.estimate.bytes == 10 * 101 * MB + MB


def test_without_sizes_of_inputs_the_old_output_sizes_the_chunks():
    """An input that is read whole says nothing about single days."""
    product = replace(PRODUCT, inputs=(PRODUCT.inputs[2],))
    target = replace(TARGET, partitions={day: PartitionSize(1, 300 * MB, 1) for day in DAYS})
    made = plan(product=product, inputs={"fx_rates": INPUTS["fx_rates"]}, target=target)
    assert [len(chunk.partitions) for chunk in made.chunks] == [1] * 7


def test_the_runs_clock_is_the_newest_pinned_fact():
    """Snapshots and files give the instant; the planner's clock does not."""
    assert sealed(plan()).as_of == "2026-01-21T12:53:20.000Z"
    nothing = {name: replace(facts, newest_ms=None) for name, facts in INPUTS.items()}
    assert (
        sealed(plan(inputs=nothing, target=replace(TARGET, base_timestamp_ms=None))).as_of == "1970-01-01T00:00:00.000Z"
    )


def test_a_plan_made_twice_finds_its_own_run():
    """The run that has this manifest is no overlap, also when it was planned on another day."""
    first = plan()
    own = ActiveRun("bf-own", first.digest, "running", TARGET.table, frozenset(first.partitions))
    again = plan(active_runs=(own,), now=NOW + timedelta(days=2))
    assert (again.same_as, again.run_id, again.content) == ("bf-own", "bf-own", first.content)
    assert levels(again, "overlap") == ["ok"]
    other = plan(ask(reason="another"), active_runs=(own,))
    assert (other.same_as, levels(other, "overlap")) == (None, ["refuse"])


def test_a_plan_that_overrode_an_overlap_is_found_again_too():
    """With the override in its manifest, the second plan is the same run."""
    other = ActiveRun("bf-1", "d" * 64, "running", TARGET.table, frozenset(DAYS))
    request = ask(overrides=(Override("overlap", "they wait for us"),))
    first = plan(request, active_runs=(other,))
    own = ActiveRun("bf-own", first.digest, "planned", TARGET.table, frozenset(first.partitions))
    assert plan(request, active_runs=(other, own)).same_as == "bf-own"


def test_every_pinned_input_table_gets_one_tag():
    """Tags name the run; partitions outside the scope are counted as untouched."""
    made = plan()
    assert made.manifest is not None
    assert input_tags(made.run_id, made.manifest.inputs) == {
        ("lake.raw.adjustments", f"errata_{made.run_id}_in"): "8123",
        ("lake.ref.fx_rates", f"errata_{made.run_id}_in"): "1203944182745550012",
    }
    assert made.untouched_partitions == len(DAYS) - 7


def test_cores_come_from_the_spark_settings():
    """Local masters say it, clusters by their executors, and silence is two."""
    assert [count_cores(master, {}) for master in ("local[4]", "local[4,2]", "yarn")] == [4, 4, 2]
    assert count_cores("spark://h:7077", {"spark.cores.max": "12"}) == 12
    assert PROJECT.spark_master == "local[2]"


def test_a_change_log_alone_is_no_reason_for_more_chunks():
    """Every chunk reads the whole log, so that four chunks read it four times; a fixed size of chunks still counts."""
    capture = ChangeCapture(("account_id",), "lake.raw.ends")
    log = replace(PRODUCT.inputs[1], cdc=capture)
    share = {day: PartitionSize(1, 100_000 * MB, 1, "log") for day in DAYS[:7]}
    inputs = {"adjustments": replace(INPUTS["adjustments"], partitions=share)}

    def count(changed: Input, fixed: int | None = None) -> int:
        project = replace(PROJECT, chunk_bytes=fixed)
        return len(sealed(plan(product=replace(PRODUCT, inputs=(changed,)), project=project, inputs=inputs)).chunks)

    assert count(PRODUCT.inputs[1]) == 7
    assert count(log) == 1
    assert count(log, 100_000 * MB) == 7
