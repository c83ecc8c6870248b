"""What is published or rolled back in the lake is delivered to a copy in the Snowflake emulator."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from copies.snowflake_sessions import hook_sessions
from copies.snowflake_subject import make_account, make_key
from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.errors import EngineError
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Effect
from errata.wiring.warehouse_accounts import build_account
from support.copy_world import build_product
from support.fakesnow import FakeSnowflake
from support.memory_world import MemoryWorld

CREATE = "create table SALES (DAY date, ACCOUNT varchar, GROSS number(12,2), N number(38,0))"
COPY = "{warehouse: snow, table: SALES}"
Row = tuple[str, str, Decimal, int]


@dataclass
class World:
    """A lake in memory, and an emulated account that has the copy."""

    lake: MemoryWorld
    server: FakeSnowflake
    database: str

    def connect(self, **hooks: Callable[[str], None]) -> None:
        """Let commands write to the emulator, through sessions with these hooks."""
        account = make_account(self.server, self.database)
        copies = SnowflakeCopies({"snow": account}, hook_sessions(**hooks))
        self.lake.engines.copies = lambda _: copies  # type: ignore[method-assign]

    def execute(self, *statements: str) -> list[Any]:
        return self.server.execute(*statements, database=self.database, schema="PUBLIC")

    def rows(self) -> list[Row]:
        return [
            tuple(row) for row in self.execute("select DAY::varchar, ACCOUNT, GROSS, N from SALES order by 1, 2, 3, 4")
        ]

    def put(self, row: Row) -> None:
        day, account, gross, n = row
        self.execute(f"insert into SALES select '{day}', '{account}', {gross}, {n}")

    def items(self) -> list[OutboxItem]:
        return [one for one in self.lake.ledger.outbox.list() if one.effect is Effect.COPY]


@pytest.fixture
def world(tmp_path: Path, fakesnow: FakeSnowflake, snowflake_database: str) -> Iterator[World]:
    """Three days, and a copy without rows."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "snow.pem").write_text(make_key(), "utf-8")
    project = (
        "\nwarehouses:\n  snow: {type: snowflake, account: fakesnow, user: errata, private_key: ../snow.pem, role: R,"
        f" warehouse: W, database: {snowflake_database}, schema: PUBLIC, host: 'http://127.0.0.1:{fakesnow.port}'}}\n"
    )
    lake = MemoryWorld.make(tmp_path / "lake", product=build_product(COPY), project=project, days=3)
    made = World(lake, fakesnow, snowflake_database)
    made.execute(CREATE)
    made.connect()
    yield made
    lake.client.close()


def test_a_publication_and_a_rollback_reach_the_copy(world: World) -> None:
    """With the command that causes them: the copy holds the rows of the lake, each once, and nothing is left behind."""
    lake = world.lake
    declared = lake.workspace.project.warehouses["snow"]
    copies = SnowflakeCopies({"snow": build_account(declared, lake.root)})
    lake.engines.copies = lambda _: copies  # type: ignore[method-assign]
    run = lake.to("published", f"{lake.days[0]}..{lake.days[1]}")
    assert world.rows() == lake.expected(lake.days[:2])
    [item] = world.items()
    assert (item.state, item.result["rows_written"], item.result["rows_removed"]) == ("paid", 6, 0)
    assert item.result["queries"]
    lake.client.rollback(run, partitions=lake.days[0], reason="wrong rates", as_="bo")
    assert world.rows() == sorted([*lake.wrong(lake.days[:1]), *lake.expected(lake.days[1:2])])
    assert [one.state for one in world.items()] == ["paid", "paid"]
    tables = {row[1] for row in world.execute("show tables in schema PUBLIC")}
    assert tables == {"SALES", "ERRATA_MARKERS_SALES", "ERRATA_DELIVERED_SALES"}


@pytest.mark.parametrize("word", ['DELETE FROM "SALES"', 'INSERT INTO "SALES"', "COMMIT"])
def test_rows_that_others_insert_during_a_delivery_are_on_record(world: World, word: str) -> None:
    """Nothing keeps an INSERT out. The emulator shows it after the commit; Snowflake also in the transaction."""
    foreign = (world.lake.days[0], "someone else", Decimal("1.00"), 1)
    seen: list[str] = []

    def write(statement: str) -> None:
        seen.append(statement)
        # the commit of the swap, not those of loading and of the marker
        is_swap = any(one.startswith("DELETE") for one in seen)
        if statement.startswith(word) and is_swap and foreign not in world.rows():
            world.put(foreign)

    world.connect(before=write)
    world.lake.to("published", world.lake.days[0])
    [item] = world.items()
    assert item.result["written_since"] == [world.lake.days[0]]
    assert world.rows() == sorted([*world.lake.expected(world.lake.days[:1]), foreign])


def test_rows_that_nobody_accepted_stop_a_delivery(world: World) -> None:
    """The item is failed and names the day and the command; the copy is as it was."""
    day = world.lake.days[0]
    world.put((day, "a", Decimal("1.00"), 1))
    world.lake.to("published", day)
    [item] = world.items()
    assert item.state == "failed"
    assert day in (item.last_error or "")
    assert "--baseline" in (item.last_error or "")
    assert world.rows() == [(day, "a", Decimal("1.00"), 1)]


def kill_payer(world: World, number: int) -> bool:
    """A process that pays what is owed and is killed after this many statements; False: it ended before."""
    seen: list[str] = []

    def kill(statement: str) -> None:
        seen.append(statement)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            world.lake.open()
            world.connect(after=kill)
            world.lake.client.deliver(as_="ana")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def refuse(_: str) -> None:
    raise EngineError("the warehouse is down")


@pytest.mark.slow
@pytest.mark.parametrize("event", ["publish", "rollback"])
def test_payers_that_are_killed_one_after_the_other_deliver_once(world: World, event: str) -> None:
    """Each is killed three statements later than the one before, until one gets through; repeating changes nothing."""
    lake, day = world.lake, world.lake.days[0]
    if event == "publish":
        world.connect(before=refuse)
    run = lake.to("published", day)
    if event == "rollback":
        world.connect(before=refuse)
        lake.client.rollback(run, reason="wrong rates", as_="bo")
    wanted = (lake.expected if event == "publish" else lake.wrong)([day])
    held = world.rows()
    kills = 0
    for number in range(1, 200, 3):
        if not kill_payer(world, number):
            break
        kills += 1
        # at once, and also after the number of attempts after which a person is asked
        lake.client.retry_outbox([str(world.items()[-1].item_id)], as_="ana")
        # what Snowflake does some minutes after a client has disappeared
        world.server.end_transactions()
        assert world.rows() in (held, wanted)
    assert kills > 10
    world.connect()
    assert lake.client.deliver(as_="ana").ok
    assert world.rows() == wanted
    item = world.items()[-1]
    assert item.state == "paid"
    states = [row[0] for row in world.execute("select STATE from ERRATA_MARKERS_SALES where PUBLICATION <> ''")]
    assert states.count("done") == len(world.items())
    assert "open" not in states


def test_a_row_that_was_edited_by_hand_is_found_and_repaired(world: World) -> None:
    """`copies check` names the partition; the approved repair replaces it in one swap; the lake gets no commit."""
    lake = world.lake
    lake.to("published")
    before, day = lake.snapshot(), lake.days[1]
    world.execute(f"update SALES set N = N + 1 where DAY = '{day}'")
    [found] = lake.client.check_copies("fin.sales").copies
    assert [(one.partition, one.why) for one in found.differing] == [(day, "changed")]
    plan = lake.client.plan("fin.sales", partitions=day, reason="edited by hand", kind="repair", copies=(), as_="ana")
    lake.client.approve(plan.run_id, digest=plan.digest, as_="bo")
    assert lake.client.run(plan.run_id, as_="ana").state == "published"
    assert (world.rows(), lake.snapshot()) == (lake.expected(), before)
    assert lake.client.check_copies("fin.sales").ok
