"""Products that read recorded files: every line is used or quarantined once, and only the pinned bytes are read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from decimal import Decimal

import pytest

from errata.errors import PlanRefused, RunFailed
from support.world import PRODUCT_FILE, World

INPUT = """\
inputs:
  raw:
    recording: orders
    partition: day
    columns: {account: string, amount: "decimal(12,2)", day: date}
    quarantine: {warn: 90%}
"""
PRODUCT = PRODUCT_FILE.replace(PRODUCT_FILE[PRODUCT_FILE.index("inputs:") : PRODUCT_FILE.index("publish:")], INPUT)
SOURCE = 'sources: {orders: {format: json, duplicates: correction, range: {name: "orders_{%Y-%m-%d}*"}}}\n'


def drop(world: World, name: str, *lines: str, at: int = 1_767_500_000) -> str:
    """A file in the landing directory."""
    place = world.root / "landing" / name
    place.parent.mkdir(exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    place.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    os.utime(place, (at, at))
    return str(place)


def order(day: str, account: str, amount: str) -> str:
    return f'{{"day": "{day}", "account": "{account}", "amount": {amount}}}'


FIRST = (
    order("2026-01-01", "a", "1.10"),
    "not JSON",
    order("2026-01-01", "a", "1.005"),  # a cent has no half
    order("2026-01-02", "a", "5.00"),  # of another day than its file
    order("2026-01-01", "b", "2"),
)
BOTH = (
    order("2026-01-02", "a", "3.00"),
    order("2026-01-03", "c", "4.00"),
    '{"day": "soon", "account": "d", "amount": 1}',
    order("2026-01-03", "c", "0.50"),
)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Three days; the first has a file of its own, the others share one."""
    world = make_world(days=3, product=PRODUCT, project=SOURCE, chunk_bytes="1")
    world.client.import_files(drop(world, "orders_2026-01-01.json", *FIRST), "orders", as_="ana")
    both = drop(world, "late.json.gz", *BOTH)
    world.client.import_files(both, "orders", start="2026-01-02", end="2026-01-04", as_="ana")
    return world


def test_every_line_is_used_or_quarantined_once(world: World):
    """Also in a file that several chunks read: every line that is not used is named by file and number."""
    run = world.to("published")
    rows = [(day, account, gross) for day, account, gross, _ in world.rows()]
    assert rows == [
        ("2026-01-01", "a", Decimal("1.10")),
        ("2026-01-01", "b", Decimal("2.00")),
        ("2026-01-02", "a", Decimal("3.00")),
        ("2026-01-03", "c", Decimal("4.50")),
    ]
    view = world.client.quarantine(run, sample=9)
    assert view.inputs["raw"] == {"rows_in": 9, "rows_used": 5, "rows_quarantined": 4, "rows_suppressed": 0}
    found = {(one.reason, one.partition, one.origin.rpartition("/")[2]) for one in view.rows}
    assert found == {
        ("line not JSON", "2026-01-01", "orders_2026-01-01.json:2"),
        ("cast amount", "2026-01-01", "orders_2026-01-01.json:3"),
        ("line of another time than its file", "2026-01-01", "orders_2026-01-01.json:4"),
        ("cast day", "2026-01-02", "late.json.gz:3"),
    }
    (source,) = world.client.show(run).inputs
    assert (source.recording, source.file_count) == ("orders", 3)
    assert {one.first_run for one in world.client.recordings().files} == {run}

    later = (*FIRST[:1], order("2026-01-01", "b", "7"))
    world.client.import_files(drop(world, "orders_2026-01-01.json", *later, at=1_767_600_000), "orders", as_="ana")
    stale = world.client.stale("fin.sales").partitions
    assert [one.partition for one in stale if one.state == "stale"] == ["2026-01-01"]


@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_a_recorded_file_is_read_only_with_the_hash_that_was_pinned(world: World, harm: str):
    """One bit that differs, with the same size and time, or no file at all: the chunk fails by name."""
    run = world.to("approved", "2026-01-01")
    (held,) = [one for one in world.client.recordings().files if one.name.startswith("orders")]
    content = world.root / "recordings" / f"{held.place}.rows.parquet"
    if harm == "missing":
        content.unlink()
    else:
        before, times = content.read_bytes(), content.stat()
        content.write_bytes(before[:-20] + bytes([before[-20] ^ 1]) + before[-19:])
        os.utime(content, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    assert f"{held.name}.rows.parquet {'is missing' if harm == 'missing' else 'changed: sha256:'}" in str(failed.value)
    assert world.snapshot() == world.start


def test_a_file_that_lacks_a_column_is_refused_by_name(world: World):
    """The plan names file and column; an era with a default or a rename adapts it."""
    drop(world, "orders_2026-01-01.b.json", '{"day": "2026-01-01", "account": "z", "price": 1}')
    world.client.import_files(str(world.root / "landing"), "orders", as_="ana")
    with pytest.raises(PlanRefused, match=r"01\.b\.json\.rows\.parquet\): era only, column amount is not there"):
        world.plan("2026-01-01")
