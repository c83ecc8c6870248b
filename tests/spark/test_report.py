"""The report of a real run: before and after its publication, with classified columns, and what it proves."""

from __future__ import annotations

from collections.abc import Callable

from errata.engines.iceberg.metadata.untouched import IcebergOutsideReader
from errata.report.page import render_page
from support.office import ANA
from support.world import PRODUCT_FILE, World

Make = Callable[..., World]
PRODUCT = PRODUCT_FILE + (
    'compare:\n  - {name: gross moved, metric: "sum(gross)", warn: 90%}\n'
    "classified: [account]\ndiff: {tolerance: {gross: 0.01}}\n"
)


def test_a_report_follows_a_run_from_verdict_to_publication(make_world: Make) -> None:
    """Numbers, people, proof and mask are there when it is validated and still after it is published."""
    world = make_world(days=4, product=PRODUCT)
    scope = world.days[:3]
    run = world.to("validated", f"{scope[0]}..{scope[-1]}")
    found = world.client.report(run, sample=3)
    assert (found.state, found.partitions, found.judged_by) == ("validated", scope, "ana")
    assert found.next == (f"errata publish {run} --as bo",)
    diff = found.diff
    assert diff is not None
    assert sum(part.changed for part in diff.diff.partitions) == 9
    gross = diff.diff.columns["gross"]
    assert (gross.changed, gross.median_percent) == (9, "-50.00")
    assert diff.outside is not None
    assert (diff.outside.partitions, diff.outside.differing) == (1, ())
    moved = next(metric for metric in diff.metrics if metric.kind == "compare")
    assert [one.percent for one in moved.partitions] == ["-50.00"] * 3
    balance = next(metric for metric in diff.metrics if metric.kind == "reconcile")
    assert [one.change for one in balance.partitions] == ["0.00"] * 3
    text = render_page(found)
    assert "Passed the gate" in text
    assert ">a0<" not in text
    assert {row.key["account"] for row in diff.diff.sample} == {"•••"}
    world.client.publish(run, as_="bo")
    after = world.client.report(run, sample=0)
    assert after.state == "published"
    assert [(one.kind, one.person, one.partitions) for one in after.releases] == [("publish", "bo", scope)]
    assert after.diff is not None
    assert after.diff.diff.partitions == diff.diff.partitions
    assert "bo" in render_page(after)
    history = world.client.why("lake.fin.sales", scope[0], key={"account": "a0"}).history
    assert [(item.after or {})["account"] for item in history] == ["•••", "•••"]
    assert (history[-1].after or {})["gross"] == str(world.expected([scope[0]])[0][2])


def test_a_partition_touched_outside_the_scope_is_named(make_world: Make) -> None:
    """File sets outside the scope are compared: a file that came, one that went, and a delete file all show."""
    world = make_world(days=3)
    target = world.ledger.runs.manifest(world.plan(world.days[0]).id, ANA).target
    reader = IcebergOutsideReader(world.engines.catalogs)
    base = str(world.snapshot())
    world.live(world.days[0])
    inside = reader.outside(target, base, str(world.snapshot()), [world.days[0]])
    world.live(world.days[1])
    world.sql(f"DELETE FROM lake.fin.sales WHERE day = date'{world.days[2]}'")
    touched = reader.outside(target, base, str(world.snapshot()), [world.days[0]])
    assert inside is not None
    assert (inside.partitions, inside.differing) == (2, ())
    assert touched is not None
    assert (touched.partitions, touched.differing) == (2, world.days[1:])
    assert reader.outside(target, base, "1", []) is None
