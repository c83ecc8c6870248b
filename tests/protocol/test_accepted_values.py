"""What readers should see is known from the gate where possible, and measured where someone changed it since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from errata.errors import UsageError
from errata.gate.accepted_values import read_accepted_values
from errata.model.audit import Actor
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

Make = Callable[..., World]
COMPARED = PRODUCT_FILE.replace("checks:", "compare:\n  - {name: total, metric: sum(gross), warn: 500%}\nchecks:")
ACTOR = Actor("ana", "ana", "host")


@dataclass
class Counting:
    """A measurer that counts its scans."""

    inner: Any
    scans: int = 0

    def measure(self, *arguments: Any, **options: Any) -> Any:
        self.scans += 1
        return self.inner.measure(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _read(world: World, run: str, expression: str) -> tuple[dict[str, Decimal], int]:
    """The values, and how many scans they took."""
    counting = world.engines.measurer = Counting(world.engines.measurer)  # type: ignore[assignment]
    found = read_accepted_values(
        world.workspace, ACTOR, world.ledger.runs.manifest(run), expression, world.days, where="verify"
    )
    world.engines.measurer = counting.inner
    return {name: Decimal(value or "NaN") for name, value in found.values.items()}, counting.scans


def _totals(world: World) -> dict[str, Decimal]:
    return {day: sum((gross for name, _, gross, _ in world.rows() if name == day), Decimal(0)) for day in world.days}


def test_numbers_of_the_gate_need_no_scan(make_world: Make) -> None:
    """After a publication and after its rollback, what a rule measured is known."""
    world = make_world(days=3, product=COMPARED)
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    # the last day was never published: nobody measured it
    assert _read(world, run, "sum(gross)") == (_totals(world), 1)
    second = world.to("published", world.days[2])
    assert _read(world, second, "SUM( gross )") == (_totals(world), 0)
    before = _totals(world)
    world.client.rollback(second, reason="wrong", as_="bo")
    after = _totals(world)
    assert (after != before, _read(world, second, "sum(gross)")) == (True, (after, 0))


def test_what_no_rule_measured_is_read(make_world: Make) -> None:
    """Another aggregate than the one of a rule takes a scan, and rows are counted in metadata."""
    world = make_world(days=2, product=COMPARED)
    run = world.to("published")
    assert _read(world, run, "sum(gross * 1)") == (_totals(world), 1)
    rows = {day: Decimal(sum(name == day for name, *_ in world.rows())) for day in world.days}
    assert _read(world, run, "count(*)") == (rows, 0)


def test_a_live_write_after_the_publication_counts(make_world: Make) -> None:
    """Readers see what main holds, so that is expected, and numbers of other files are not used."""
    world = make_world(days=3, product=COMPARED)
    run = world.to("published")
    world.live(world.days[0])
    world.table.delete(world.days[1], account=world.rows()[-1][1])
    assert _read(world, run, "sum(gross)") == (_totals(world), 1)
    world.client.rollback(run, partitions=world.days[2], reason="wrong", as_="bo")
    world.live(world.days[2])
    assert _read(world, run, "sum(gross)") == (_totals(world), 1)


def test_versions_beside_the_table_are_known_from_the_gate_only(make_world: Make) -> None:
    """The table still has the rows from before, which nobody should see."""
    mode = "{mode: version, versions: lake.fin.sales_versions, view: lake.fin.sales_now,"
    world = make_world(days=2, product=COMPARED.replace("{mode: replace_partitions,", mode))
    before = _totals(world)
    run = world.to("published")
    found, scans = _read(world, run, "sum(gross)")
    assert (found, scans) == ({day: total / 2 for day, total in before.items()}, 0)
    with pytest.raises(UsageError, match="leaves the table untouched, and no rule of the product measured it"):
        _read(world, run, "max(gross)")
    world.client.rollback(run, reason="wrong", as_="bo")
    assert _read(world, run, "sum(gross)")[0] == before
