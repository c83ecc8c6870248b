"""What the guide on copies shows is true: its statements, files and commands, on a real server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.copy_world import CopyWorld
from support.postgres import PostgresServer
from support.terminal import text

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/copy-to-a-warehouse.md").read_text("utf-8")
ROLE = "errata_copies"
REST = """project: fin
ledger: sqlite:///.errata/ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///lake/catalog.db", warehouse: lake/warehouse}}
people: single-user
"""
# the guide's product, in the words of the project that tests have
WORDS = {
    "daily_revenue": "sales", "business_date": "day", "account_id": "account", "revenue_usd": "gross",
    "event_count": "n",
}  # fmt: skip


def blocks(language: str) -> list[str]:
    """What the page shows in this language."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    for old, new in WORDS.items():
        found = [one.replace(old, new) for one in found]
    return found


@pytest.fixture
def world(
    make_world: Callable[..., CopyWorld], postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CopyWorld]:
    """The copy as the page sets it up, loaded by another job."""
    (setup,) = blocks("sql")
    _, product = blocks("yaml")
    (copy,) = re.findall(r"- (\{warehouse: pg.*\})", product)
    postgres.execute(f"DROP ROLE IF EXISTS {ROLE}")
    monkeypatch.setenv("PG_PASSWORD", "change-me")
    made = make_world(days=3, copy=copy, create=[one for one in setup.split(";\n") if one.strip()], history=False)
    address = postgres.url(database, role=ROLE).replace("+psycopg", "")
    made.lake.prepare = lambda engines: made.connect(engines, address)
    made.lake.open()
    made.server.execute(
        "INSERT INTO fin.sales VALUES " + ", ".join(f"('{d}', '{a}', {g}, {n})" for d, a, g, n in made.lake.rows()),
        database=database,
    )
    yield made
    postgres.execute(f"DROP OWNED BY {ROLE} CASCADE", f"DROP ROLE {ROLE}", database=database)


def rows(world: CopyWorld) -> list[tuple[object, ...]]:
    """The copy, read by its owner."""
    query = "SELECT day::text, account, gross, n FROM fin.sales ORDER BY 1, 2, 3, 4"
    return [tuple(row) for row in world.server.execute(query, database=world.database)]


def test_the_page_leads_from_a_loaded_table_to_a_delivered_copy_and_back(world: CopyWorld) -> None:
    """With no other rights than those of the page: accept what is there, publish, roll back, deliver."""
    (baseline,) = [one for one in blocks("sh") if "--baseline" in one]
    look, accept = baseline.strip().splitlines()
    days = world.lake.days
    code, said = text(world.lake, look, "bo")
    assert (code, "3 as main" in said, "nothing was accepted" in said) == (0, True, True), said
    code, said = text(world.lake, accept, "bo")
    assert (code, "accepted as they are: loaded by the nightly job until now" in said) == (0, True), said
    run = world.lake.to("published")
    assert rows(world) == world.lake.expected(days)
    assert "delivered: yes" in text(world.lake, f"errata status {run}")[1]
    world.lake.client.rollback(run, partitions=days[0], reason="wrong rates", as_="bo")
    assert rows(world) == sorted([*world.lake.wrong(days[:1]), *world.lake.expected(days[1:])])
    assert text(world.lake, "errata deliver")[0] == 0


def test_what_was_not_accepted_is_not_replaced_and_the_page_has_the_way_out(world: CopyWorld) -> None:
    """The publication succeeds, the copy stays as it was, and the command that is shown leads to the delivery."""
    before = rows(world)
    run = world.lake.to("published")
    assert rows(world) == before
    code, said = text(world.lake, f"errata status {run}")
    command = f"errata deliver fin.sales --baseline --partitions {world.lake.days[0]}..{world.lake.days[-1]}"
    assert (code, said.count(command)) == (0, 2), said  # below the copy and below its item
    assert " deliver fin.sales --as " in said.rpartition("next: ")[2]
    assert "outbox retry" not in said
    assert text(world.lake, f'{command} --reason "loaded by the nightly job"')[0] == 0
    assert text(world.lake, "errata deliver")[0] == 0
    assert rows(world) == world.lake.expected(world.lake.days)


def test_the_address_of_the_page_is_accepted(tmp_path: Path) -> None:
    """The declared warehouse loads, and its password comes from the variable."""
    from errata.project import load_project

    declared, _ = blocks("yaml")
    (tmp_path / "errata.yaml").write_text(f"{REST}{declared}", "utf-8")
    found = load_project(tmp_path, environ={"PG_PASSWORD": "s3cret"}).warehouses["pg"]
    assert (found.type, found.uri) == ("postgres", "postgresql://errata_copies:s3cret@db.example/bi")
