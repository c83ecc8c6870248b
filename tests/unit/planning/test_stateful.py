"""Products that read their own output, canaries that are named, and proofs of determinism."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.errors import UsageError
from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.refs import input_tags
from errata.planning.build import Plan, build_own_input
from errata.planning.packing import SMALLEST_PER_CORE
from errata.planning.request import Request
from unit.planning.worlds import DAYS, INPUTS, MB, PRODUCT, PROJECT, TARGET, ask, levels, message, plan

OWN = Input("previous", table=PRODUCT.target.table, partition="business_date", lookback="2d", own=True)
STATEFUL = replace(PRODUCT, inputs=(*PRODUCT.inputs, OWN))
LATER = {"start": "2026-01-10", "end": "2026-01-15"}


def stateful(request: Request) -> Plan:
    """A plan of the product that reads its own output."""
    end = (request.end or "")[-2:]
    scope = [day for day in DAYS if (request.start or "") <= day and day[-2:] < end]
    facts = {"previous": build_own_input(OWN, STATEFUL, TARGET, scope)}
    return plan(request, product=STATEFUL, inputs={**INPUTS, **facts})


def test_own_output_makes_a_run_sequential_one_partition_at_a_time():
    """A partition may start only when those before it are staged."""
    made = stateful(ask(**LATER))
    assert made.manifest is not None
    assert made.manifest.order == made.order == "sequential"
    assert [chunk.partitions for chunk in made.chunks] == [(day,) for day in DAYS[9:14]]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_another_order_is_refused_for_own_output(order: str):
    """Newest first would read what is not there yet."""
    with pytest.raises(
        UsageError, match=r"expected sequential: input previous of fin\.daily_revenue is its own output"
    ):
        stateful(ask(order=order, **LATER))
    assert stateful(ask(order="sequential", **LATER)).order == "sequential"


def test_own_output_is_pinned_at_the_base_and_needs_no_tag_of_its_own():
    """The pin is the target's base; the partitions are those before each one, also those the run makes itself."""
    made = stateful(ask(**LATER))
    assert made.manifest is not None
    pin = made.manifest.inputs[-1]
    assert (pin.own, pin.kind, pin.location, pin.snapshot_id) == (True, "table", TARGET.table, TARGET.base_snapshot_id)
    assert (pin.lookback, pin.lookahead, pin.input_partitions) == (2, 0, DAYS[7:13])
    assert (pin.rows, pin.file_count) == (20, 2)
    tagged = {table for table, _ in input_tags(made.run_id, made.manifest.inputs)}
    assert tagged == {"lake.raw.adjustments", "lake.ref.fx_rates"}


def test_the_first_partitions_warn_that_own_output_begins_with_them():
    """Nothing before the first partition is a warning: somewhere a product begins."""
    made = stateful(ask(start="2026-01-01", end="2026-01-03"))
    assert levels(made, "source-missing") == ["warn"]
    assert "previous: look-back lacks 2025-12-30 … 2025-12-31" in message(made, "source-missing")
    assert levels(stateful(ask(**LATER)), "source-missing") == ["ok"]


def test_a_partition_never_needs_itself():
    """What precedes, step by step, without gaps closing it."""
    assert rule_of_input(OWN, Grain.DAY).list_reads(["2026-01-10", "2026-01-20"]) == (
        "2026-01-08",
        "2026-01-09",
        "2026-01-18",
        "2026-01-19",
    )


def test_a_canary_may_be_named():
    """A declared subset goes first, whatever the order; its number is in the manifest."""
    made = plan(ask(canary="2026-01-03,2026-01-05..2026-01-06"))
    assert made.manifest is not None
    first = [name for chunk in made.chunks if chunk.wave == 0 for name in chunk.partitions]
    assert first == ["2026-01-06", "2026-01-05", "2026-01-03"]
    assert made.manifest.canary == 3
    assert made.manifest.chunks[0].wave == 0
    assert {name for chunk in made.chunks for name in chunk.partitions} == set(made.partitions)


def test_a_canary_by_number_is_the_first_in_order():
    """As text or number."""
    for canary in (2, "2"):
        made = plan(ask(canary=canary))
        assert [chunk.partitions for chunk in made.chunks if chunk.wave == 0] == [("2026-01-07", "2026-01-06")]
    assert {chunk.wave for chunk in plan(ask()).chunks} == {1}


@pytest.mark.parametrize(
    "canary,order,said",
    [
        ("2026-02-01", None, "2026-02-01 is outside it"),
        ("2026-01-03", "sequential", "expected the oldest partitions of the scope"),
        ("soon", None, "expected a day such as"),
    ],
)
def test_a_canary_that_cannot_be_is_refused(canary: str, order: str | None, said: str):
    """It is part of the scope, and a sequential run begins at the beginning."""
    with pytest.raises(UsageError, match=said):
        plan(ask(canary=canary, order=order))
    assert plan(ask(canary="2026-01-01..2026-01-02", order="sequential")).manifest is not None


def test_the_larger_proof_is_asked_for():
    """A request may ask for more than the product, never for less."""
    proving = replace(PRODUCT, prove_determinism=3)
    for asked, found in ((0, 3), (2, 3), (5, 5)):
        made = plan(ask(prove_determinism=asked), product=proving)
        assert made.manifest is not None
        assert made.manifest.prove_determinism == found
    with pytest.raises(UsageError, match="--prove-determinism"):
        ask(prove_determinism=-1)


def test_chunks_follow_the_measured_rate_unless_their_size_is_fixed():
    """101 MB a day at the assumed rate make one chunk of about two minutes, not one per day."""
    sized = replace(PROJECT, chunk_bytes=None)
    assert [len(chunk.partitions) for chunk in plan(project=sized).chunks] == [7]
    assert [len(chunk.partitions) for chunk in plan(project=replace(PROJECT, chunk_bytes=101 * MB)).chunks] == [1] * 7
    short = plan(project=replace(sized, chunk_seconds=20))
    assert [len(chunk.partitions) for chunk in short.chunks] == [3, 3, 1]
    assert all(chunk.bytes >= SMALLEST_PER_CORE for chunk in short.chunks)


def test_two_snapshots_of_one_table_have_a_tag_each():
    """Inputs on one table that were read a moment apart keep both snapshots."""
    made = plan(ask())
    assert made.manifest is not None
    one = made.manifest.inputs[1]
    two, same = replace(one, name="late", snapshot_id="9000"), replace(one, name="again")
    table = one.location
    assert input_tags("bf-1", (one, two, same)) == {
        (table, "errata_bf-1_in"): "8123",
        (table, "errata_bf-1_in2"): "9000",
    }
