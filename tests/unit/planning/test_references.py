"""Which snapshot of a reference each partition reads, and chunks that never mix them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import EngineError
from errata.model.manifest import Estimate, SnapshotSpan
from errata.model.partition import Grain, end_of, expand_range
from errata.model.pinned_snapshots import find_kinds, narrow_pins, refuse_open_pin
from errata.model.refs import input_tags
from errata.planning.packing import pack_chunks
from errata.planning.plan_context import PlanContext
from errata.planning.references import MAX_SNAPSHOTS, DecidedPin, check_references, find_decided, find_recorded
from errata.planning.repack import ChunkTiming, resize_chunks
from errata.ports.tables import MainEntry
from unit.gate.manifests import input_pin, manifest
from unit.planning.worlds import CODE, INPUTS, NOW, PRODUCT, PROJECT, TARGET, ask, plan

DAYS = expand_range(Grain.DAY, "2026-01-01", "2026-01-11")
START_MS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
HOUR_MS = 3_600_000


@given(st.lists(st.tuples(st.integers(-50, 300), st.booleans()), max_size=12))
def test_a_day_reads_the_newest_snapshot_committed_before_it_ended(commits: list[tuple[int, bool]]) -> None:
    """Held against a naive search; a snapshot that expired, or a time before all snapshots, has no stand-in."""
    ordered = sorted(commits, key=lambda one: one[0])
    log = [MainEntry(START_MS + hour * HOUR_MS, str(n), exists) for n, (hour, exists) in enumerate(ordered)]
    found = find_recorded(Grain.DAY, DAYS, log)
    for day in DAYS:
        end_ms = int(end_of(Grain.DAY, day).timestamp() * 1000)
        before = [entry for entry in log if entry.at_ms < end_ms]
        if before and before[-1].exists:
            assert found.snapshot_of[day] == before[-1].snapshot_id
        else:
            assert day in found.unresolved
    assert not set(found.snapshot_of) & set(found.unresolved)


def test_main_that_was_set_back_counts_as_it_was_then() -> None:
    """The log names a snapshot again; the days in between read what was there."""
    log = [MainEntry(START_MS + n * 24 * HOUR_MS + 1, name, exists=True) for n, name in enumerate(["a", "b", "a"])]
    assert find_recorded(Grain.DAY, DAYS[:3], log).snapshot_of == dict(zip(DAYS[:3], "aba", strict=True))


def test_the_partition_of_null_and_a_table_without_snapshots_are_unresolved() -> None:
    """Neither has a time to look at."""
    assert find_recorded(Grain.DAY, ["null"], [MainEntry(0, "a", exists=True)]).unresolved == {
        "null": "the partition of NULL has no end in time"
    }
    assert "no snapshot" in find_recorded(Grain.DAY, DAYS[:1], []).unresolved[DAYS[0]]


def test_a_decision_is_read_from_the_run_that_made_it() -> None:
    """One snapshot, or its own among several; whoever read no table, or a snapshot that is gone, is named."""
    one = input_pin("rates", "lake.rates", None, None, snapshot_id="7")
    several = replace(one, snapshots=(SnapshotSpan("5", DAYS[1:2]), SnapshotSpan("6", DAYS[2:3])))
    decided = {
        DAYS[0]: DecidedPin("bf-1", one),
        DAYS[1]: DecidedPin("bf-2", several),
        DAYS[2]: DecidedPin("bf-2", several),
        DAYS[3]: DecidedPin("bf-3", None),
    }
    found = find_decided(DAYS[:5], decided, "lake.rates", {"7": True, "5": True})
    assert found.snapshot_of == {DAYS[0]: "7", DAYS[1]: "5"}
    assert found.unresolved == {
        DAYS[2]: "snapshot 6, which bf-2 read, has expired",
        DAYS[3]: "bf-3, which decided it, did not read a snapshot of lake.rates",
        DAYS[4]: "no run of this ledger decided it",
    }


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 500))
def test_no_chunk_mixes_kinds_and_every_partition_is_in_one(kinds: list[int], most: int) -> None:
    """In order, whatever the sizes are, when packed and when packed again."""
    names = [f"{n:02d}" for n in range(len(kinds))]
    by_name = dict(zip(names, kinds, strict=True))
    chunks = pack_chunks(names, lambda _: (1, 100), most, kinds=by_name, canary=names[:2])
    assert [name for chunk in chunks for name in chunk.partitions] == names
    assert all(len({by_name[name] for name in chunk.partitions}) == 1 for chunk in chunks)
    done = [ChunkTiming(10**9, 1.0)]
    again = resize_chunks(chunks, done, seconds=10**4, cores=1, kinds=by_name) or chunks
    assert [name for chunk in again for name in chunk.partitions] == names
    assert all(len({by_name[name] for name in chunk.partitions}) == 1 for chunk in again)


def test_a_pin_is_narrowed_to_partitions_that_agree() -> None:
    """Engines read only such pins: any one snapshot would be wrong for the others."""
    pin = input_pin("rates", "lake.rates", None, None, snapshot_id="6")
    pin = replace(pin, snapshots=(SnapshotSpan("5", DAYS[:2]), SnapshotSpan("6", DAYS[2:4])))
    run = manifest(partitions=DAYS[:4], inputs=(pin,))
    assert find_kinds(run.inputs, run.partitions) == {
        DAYS[0]: ("5",), DAYS[1]: ("5",), DAYS[2]: ("6",), DAYS[3]: ("6",)
    }  # fmt: skip
    (narrow,) = narrow_pins(run, DAYS[:2]).inputs
    assert (narrow.snapshot_id, narrow.snapshots) == ("5", ())
    refuse_open_pin(narrow)
    with pytest.raises(EngineError, match="read 2 snapshots"):
        narrow_pins(run, DAYS[1:3])
    with pytest.raises(EngineError, match="at 2 snapshots"):
        refuse_open_pin(pin)


def test_every_snapshot_that_is_read_gets_a_tag() -> None:
    """Also those of another input of the same table, once."""
    pin = input_pin("rates", "lake.rates", None, None, snapshot_id="6")
    pin = replace(pin, snapshots=(SnapshotSpan("5", DAYS[:2]), SnapshotSpan("6", DAYS[2:4])))
    beside = input_pin("now", "lake.rates", None, None, snapshot_id="7")
    assert input_tags("bf-1", (pin, beside, replace(pin, name="again"))) == {
        ("lake.rates", "errata_bf-1_in"): "5",
        ("lake.rates", "errata_bf-1_in2"): "6",
        ("lake.rates", "errata_bf-1_in3"): "7",
    }


def test_more_snapshots_than_can_be_kept_are_refused() -> None:
    """Each has a tag on a table that others use."""
    rates = replace(PRODUCT.inputs[2], reference="as_recorded")
    product = replace(PRODUCT, inputs=(*PRODUCT.inputs[:2], rates))
    hours = expand_range(Grain.HOUR, "2026-01-01T00", "2026-02-01T00")
    for count, level in ((2, "ok"), (MAX_SNAPSHOTS + 1, "refuse")):
        of = {hour: str(n % count) for n, hour in enumerate(hours)}
        facts = replace(INPUTS["fx_rates"], snapshot_of=of)
        world = PlanContext(
            ask(), product, PROJECT.limits, hours, TARGET, {**INPUTS, "fx_rates": facts}, CODE,
            Estimate(0, 0, 0, 0, "0", ""), NOW,
        )  # fmt: skip
        (result,) = check_references(world)
        assert (result.level, result.final) == (level, level == "refuse")


def test_products_without_such_references_have_no_such_rule() -> None:
    """Plans of before have the guardrails of before."""
    assert not [one for one in plan().verdicts if one.rule == "reference"]
