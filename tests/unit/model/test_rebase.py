"""Which pins count for which partition once live has won. Pure."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from errata.model.manifest import InputPin
from errata.model.rebase import (
    Rebase,
    apply_rebase,
    apply_recounts,
    list_rebase_bases,
    list_rebase_tags,
    split_by_rebase,
)
from unit.gate.manifests import input_pin, manifest

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
RAW = input_pin("raw", "lake.raw.t", "day", "date", snapshot_id="10", counts=dict.fromkeys(DAYS, 1))
REF = input_pin("rates", "lake.ref.rates", None, None, snapshot_id="77")
PLAN = manifest(partitions=DAYS, inputs=(RAW, REF))


def rebase(n: int, *days: str) -> Rebase:
    pin: InputPin = replace(RAW, snapshot_id=f"{n}0{n}", counts=dict.fromkeys(days, n * 5))
    return Rebase(n, days, days, (), f"{n}00", f"e{n}", f"p{n}", (pin,))


def test_a_partition_is_read_at_its_newest_rebase_and_the_others_as_planned():
    """Reference data stays what was approved."""
    rebases = (rebase(1, *DAYS[:2]), rebase(2, DAYS[0]))
    read = {day: apply_rebase(PLAN, rebases, (day,)) for day in DAYS}
    assert [read[day].inputs[0].snapshot_id for day in DAYS] == ["202", "101", "10"]
    assert [read[day].target.base_snapshot_id for day in DAYS] == ["200", "100", PLAN.target.base_snapshot_id]
    assert {read[day].inputs[1].snapshot_id for day in DAYS} == {"77"}
    assert list_rebase_bases(rebases) == {DAYS[0]: "200", DAYS[1]: "100"}
    assert apply_recounts(PLAN, rebases).inputs[0].counts == {DAYS[0]: 10, DAYS[1]: 5, DAYS[2]: 1}


def test_without_a_rebase_nothing_is_different():
    """The manifest is read as it was sealed."""
    assert split_by_rebase(PLAN, ()) == (PLAN,)
    assert apply_recounts(PLAN, ()) == PLAN
    assert apply_rebase(PLAN, (), DAYS) == PLAN


@given(st.lists(st.sets(st.sampled_from(DAYS), min_size=1), max_size=4))
def test_pieces_cover_every_partition_once_whatever_live_wrote(won: list[set[str]]):
    """The first has what the plan pinned, so that what is read whole is read there."""
    rebases = tuple(rebase(n, *sorted(days)) for n, days in enumerate(won, 1))
    cut = split_by_rebase(PLAN, rebases)
    assert sorted(name for one in cut for name in one.partitions) == sorted(DAYS)
    assert cut[0].inputs == PLAN.inputs
    for one in cut:
        for name in one.partitions:
            assert replace(apply_rebase(PLAN, rebases, (name,)), partitions=one.partitions) == one


def test_each_rebase_has_tags_of_its_own():
    """Named after the run and the rebase, on the target and on the input."""
    assert dict(list_rebase_tags("bf-1", "lake.fin.t", rebase(2, DAYS[0]))) == {
        ("lake.fin.t", "errata_bf-1_r2_base"): "200",
        ("lake.raw.t", "errata_bf-1_r2_in"): "202",
    }
