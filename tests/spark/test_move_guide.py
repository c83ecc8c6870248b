"""The guide that brings a table of a database into the lake, on a real PostgreSQL: bootstrap, copy, restore from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import pytest

from errata.errors import PlanRefused
from support.terminal import text
from support.world import TABLE, World

if TYPE_CHECKING:
    from support.postgres import PostgresServer

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/move-a-table.md").read_text("utf-8")
WORDS = {
    "daily_revenue": "sales", "business_date": "day", "account_id": "account", "revenue_usd": "gross",
    "event_count": "n",
}  # fmt: skip
ROWS = [
    ("2026-01-01", "a", Decimal("1.10"), 1), ("2026-01-01", "b", Decimal("2.00"), 2),
    ("2026-01-02", "a", Decimal("30.05"), 3), ("2026-01-03", "ä'\\ b", Decimal("-4.00"), 4),
]  # fmt: skip


def blocks(language: str) -> list[str]:
    """What the page shows in this language, in the words of the project that tests have."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    for old, new in WORDS.items():
        found = [one.replace(old, new) for one in found]
    return found


@pytest.fixture
def database(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the old table."""
    pytest.importorskip("adbc_driver_postgresql")
    name = f"shop_{token_hex(4)}"
    monkeypatch.setenv("SHOP_DATABASE", postgres.create_database(name).replace("+psycopg", ""))
    values = ", ".join(f"('{day}', '{account.replace(chr(39), chr(39) * 2)}', {g}, {n})" for day, account, g, n in ROWS)
    postgres.execute(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.sales (day date, account text, gross numeric(12,2), n bigint)",
        f"INSERT INTO shop.sales VALUES {values}",
        database=name,
    )
    return name


def type_commands(world: World, which: int, run: str = "") -> list[str]:
    """Type the commands of a block; what they said."""
    said = []
    for line in blocks("console")[which].strip().splitlines():
        person, _, command = line.removeprefix("$ errata --as ").partition(" ")
        command = f"errata {command}"
        if "RUN" in command:
            run = run or world.ledger.runs.list()[-1].run_id
            command = command.replace("RUN", run)
        if command.startswith("errata approve"):
            command += f" --digest {world.client.show(run).digest}"
        code, told = text(world, command, person)
        assert code == 0, f"{command}\n{told}"
        said.append(told)
    return said


@pytest.fixture
def world(make_world: Callable[..., World], database: str) -> World:
    """The lake with the empty table, and the files of the page."""
    project, product, _ = blocks("yaml")
    create, query = blocks("sql")
    world = make_world(days=3, history=False, product=product, project=project, transform=query)
    world.sql(f"DROP TABLE {TABLE}")
    world.sql(create)
    return world


@pytest.mark.parametrize("kind", ["bootstrap", "migrate"])
def test_a_table_of_a_database_becomes_a_table_of_the_lake(world: World, kind: str):
    """Every row with all its digits; counts and sums are those of the source, in the gate as here."""
    if kind == "migrate":
        world.client.record("old_revenue", "2026-01-01", "2026-01-04", as_="ana")
        plan = world.plan(kind=kind, reason="move")
        assert "the gate compares every row with recording:" in str([v.message for v in plan.verdicts])
        for state in ("approved", "staged", "validated", "published"):
            world.step(state, plan.id)
    else:
        type_commands(world, 0)
    assert world.rows() == ROWS
    run = world.ledger.runs.list()[-1].run_id
    checks = [one for day in world.days for one in world.ledger.candidates.latest_verdict(run, (day,)).checks]
    assert {one["name"] for one in checks} >= {"rows", "revenue"} | ({kind} & {"migrate"})
    assert {one["level"] for one in checks} == {"ok"}
    with pytest.raises(PlanRefused, match="bootstrap fills empty partitions; 3 of 3 hold data"):
        world.plan(kind="bootstrap")


def test_the_old_table_stays_as_a_copy_and_gives_partitions_back(world: World, postgres: PostgresServer, database: str):
    """Baseline, a delivery after a correction, and a restore of a lost day from the copy, in one moment of it."""
    type_commands(world, 0)
    place = world.root / "products/sales.yaml"
    (copies,) = re.findall(r"  copies: .*\n", blocks("yaml")[2])
    place.write_text(place.read_text().replace("  key: [day, account]\n", f"  key: [day, account]\n{copies}"))
    world.client.close()
    world.open()
    type_commands(world, 1)
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'2026-01-02'")
    world.client.record("shop:shop.sales", "2026-01-02", "2026-01-03", as_="ana")
    plan = world.plan("2026-01-02", restore_from="shop:shop.sales", reason="deleted by mistake")
    assert plan.restored["origin"] == "recording:copy.shop.shop.sales"
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, plan.id)
    assert world.rows() == ROWS
    (held,) = world.client.recordings("shop:shop.sales").files
    assert (held.rows, held.first_run) == (1, plan.id)
    told = postgres.execute("SELECT day::text, account, gross, n FROM shop.sales ORDER BY 1, 2", database=database)
    assert [tuple(row) for row in told] == ROWS
    assert world.client.audit_verify().ok
