"""The graph of products: who reads whom, which partitions a change touches, and cycles."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import UsageError
from errata.model.graph.product_graph import PartitionSet, describe_cycle, find_cycles, list_edges, trace_impact
from errata.model.partition import NULL, Grain, expand_range
from errata.model.product import Input, Product, Publish, Target, Transform

CODE = Transform("t:f", "1")


def product(name: str, grain: Grain = Grain.DAY, *inputs: Input, column: str = "d", **more: Any) -> Product:
    """A product whose table has its name."""
    return Product(name, "ops", Target(f"lake.{name}", column, grain, **more), CODE, inputs)


def read(table: str, **more: Any) -> Input:
    """An input by partition of the table of a product."""
    return Input(table.partition(".")[2], table=f"lake.{table}", **{"partition": "d", **more})


def trace(*products: Product, root: str, partitions: list[str]) -> dict[str, PartitionSet]:
    """Touched partitions by product."""
    found = trace_impact({one.name: one for one in products}, root, partitions)
    return {one.product.name: one.partitions for one in found}


def names(*partitions: str) -> PartitionSet:
    """Some partitions."""
    return PartitionSet(frozenset(partitions))


HOUR = product("a.hour", Grain.HOUR)
DAY = product("a.day", Grain.DAY, read("a.hour", grain=Grain.HOUR))
MONTH = product("a.month", Grain.MONTH, read("a.day", grain=Grain.DAY))


def test_a_change_goes_through_hour_day_and_month():
    """Each product is touched in partitions of its own grain."""
    found = trace(HOUR, DAY, MONTH, root="a.hour", partitions=["2026-01-31T23", "2026-02-01T00"])
    assert found == {"a.day": names("2026-01-31", "2026-02-01"), "a.month": names("2026-01", "2026-02")}


def test_an_hour_touches_its_day_also_if_the_day_does_not_say_that_it_reads_hours():
    """An input without a grain is cut by the product's own partitions, so that the instants decide."""
    day = product("a.day", Grain.DAY, read("a.hour", lookback="1d"))
    assert trace(HOUR, day, root="a.hour", partitions=["2026-01-31T23"]) == {"a.day": names("2026-01-31", "2026-02-01")}


def test_paths_that_meet_again_are_joined():
    """A product that reads two touched ones has the partitions of both."""
    left = product("a.left", Grain.DAY, read("a.root", lookback="1d"))
    right = product("a.right", Grain.DAY, read("a.root", lookahead="1d"))
    both = product("a.both", Grain.DAY, read("a.left"), read("a.right"))
    found = trace(both, right, left, product("a.root"), root="a.root", partitions=["2026-01-10"])
    assert found["a.both"] == names("2026-01-09", "2026-01-10", "2026-01-11")
    assert list(found)[-1] == "a.both"  # after what it reads


@pytest.mark.parametrize(
    "child,because",
    [
        (product("a.x", Grain.DAY, read("a.root", partition=None)), "input root is read whole"),
        (product("a.x", Grain.DAY, read("a.root", partition="e")), "read by e, and a.root has partitions of d"),
        (product("a.x", Grain.VALUE, read("a.root")), "read by value, and a.root has partitions by day"),
        (product("a.x", Grain.DAY, read("a.root"), zone="Asia/Tokyo"), "a.root has days of UTC, and a.x days of Asia"),
    ],
)
def test_a_mapping_that_cannot_be_derived_touches_all_and_says_why(child: Product, because: str):
    """All is never a silent default, and what reads that product is touched as a whole too."""
    last = product("a.last", Grain.MONTH, read("a.x"))
    found = trace_impact({one.name: one for one in (product("a.root"), child, last)}, "a.root", ["2026-01-10"])
    assert [one.partitions.is_all for one in found] == [True, True]
    assert because in found[0].readings[0].because
    if (child.target.grain, child.target.zone) == (Grain.DAY, "UTC"):
        assert "all of a.x is touched" in found[1].readings[0].because


def test_rows_without_a_value_touch_rows_without_a_value():
    """NULL is read for NULL and for nothing else."""
    assert trace(HOUR, DAY, root="a.hour", partitions=[NULL]) == {"a.day": names(NULL)}


def test_partitions_by_value_touch_their_own_value():
    """Tenants build on tenants."""
    root, child = product("a.root", Grain.VALUE), product("a.x", Grain.VALUE, read("a.root"))
    assert trace(root, child, root="a.root", partitions=["EU"]) == {"a.x": names("EU")}


def test_own_output_touches_every_later_partition_and_what_reads_them():
    """A balance carries a change on for ever, which is no cycle."""
    balance = product("a.balance", Grain.DAY, Input("before", table="lake.a.balance", partition="d", lookback="1d",
                                                    own=True))  # fmt: skip
    month = product("a.month", Grain.MONTH, read("a.balance", grain=Grain.DAY))
    found = trace(balance, month, root="a.balance", partitions=["2026-01-30"])
    assert found["a.balance"] == PartitionSet(since="2026-01-31")
    assert found["a.month"] == PartitionSet(frozenset({"2026-01"}), since="2026-01")
    assert found["a.month"].contains("2026-07")
    assert not found["a.balance"].contains("2026-01-30")


def test_a_reader_of_a_side_table_is_touched_as_a_whole():
    """A table of corrections is not partitioned like the target."""
    root = product("a.root")
    root = Product(root.name, root.owner, root.target, CODE, (), publish=Publish(corrections="lake.a.fixes"))
    child = product("a.x", Grain.DAY, Input("fixes", table="lake.a.fixes", partition="d"))
    assert trace(root, child, root="a.root", partitions=["2026-01-10"])["a.x"].is_all


def test_a_reader_of_a_tag_is_touched_when_the_tag_moves():
    """Its partitions are known; the reason says what has to happen first."""
    child = product("a.x", Grain.DAY, read("a.root", version="v1"))
    (found,) = trace_impact({"a.root": product("a.root"), "a.x": child}, "a.root", ["2026-01-10"])
    assert (found.partitions, found.readings[0].because) == (
        names("2026-01-10"), "it reads the tag v1, so it is touched when the tag moves",
    )  # fmt: skip


def test_cycles_are_named_from_the_first_in_the_alphabet():
    """Each cycle is told once, in one way; own output is none."""
    one, two = product("a.one", Grain.DAY, read("a.two")), product("a.two", Grain.DAY, read("a.one"))
    own = product("a.own", Grain.DAY, Input("b", table="lake.a.own", partition="d", lookback="1d", own=True))
    self_read = product("a.self", Grain.DAY, read("a.self"))
    cycles = find_cycles([two, own, one, self_read])
    assert sorted(map(describe_cycle, cycles)) == ["a.one → a.two → a.one", "a.self → a.self"]
    assert [edge.source.name for edge in next(c for c in cycles if len(c) == 2)] == ["one", "two"]
    with pytest.raises(UsageError, match=r"a\.one → a\.two → a\.one form a cycle"):
        trace_impact({"a.one": one, "a.two": two}, "a.one", ["2026-01-01"])


def test_edges_are_inputs_that_are_tables_of_products():
    """Files, foreign tables and own output are not."""
    raw = product("a.raw", Grain.DAY, Input("f", files="x/{d}", partition="d"), Input("t", table="lake.z.z"))
    assert [(edge.parent.name, edge.child.name) for edge in list_edges([raw, HOUR, DAY])] == [("a.hour", "a.day")]


def test_many_partitions_are_traced_in_ranges():
    """Five years of hours are a moment's work."""
    hours = list(expand_range(Grain.HOUR, "2021-01-01T00", "2026-01-01T00"))
    found = trace(HOUR, DAY, MONTH, root="a.hour", partitions=hours)
    assert (len(found["a.day"].names), len(found["a.month"].names)) == (1826, 60)
