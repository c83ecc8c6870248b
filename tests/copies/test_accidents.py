"""What happens to tables, roles and servers at night: a delivery to real PostgreSQL lands whole, or says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from errata.delivery.payment import pay
from errata.engines.copies.adbc_loading import load_batches
from errata.errors import EngineError
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from support.clock import Clock, stopped_clock
from support.copy_world import CREATE, CopyWorld

Make = Callable[..., CopyWorld]
ACTOR = Actor("ana", "ana", "host")
KEEP_ZERO = "CREATE FUNCTION shop.zero() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.gross := 0; RETURN NEW; END'"
DROP_ROW = "CREATE FUNCTION shop.zero() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
ON_INSERT = "CREATE TRIGGER zero BEFORE INSERT ON shop.sales FOR EACH ROW EXECUTE FUNCTION shop.zero()"
SETTINGS = ("DateStyle = 'German'", "TimeZone = 'Asia/Kolkata'", "default_transaction_isolation = 'serializable'")


@pytest.fixture
def clock() -> Iterator[Clock]:
    with stopped_clock() as stopped:
        yield stopped


def run_sql(world: CopyWorld, *statements: str) -> list[Any]:
    return world.server.execute(*statements, database=world.database)


def pay_until_it_ends(world: CopyWorld, clock: Clock) -> None:
    while owed := [one for one in world.items() if one.state is ItemState.OWED]:
        clock.move(max(0.0, min(one.not_before for one in owed) / 1000 - clock.at.timestamp()))
        pay(world.lake.workspace, ACTOR, seconds=60)


def test_settings_of_the_database_change_no_row_and_no_hash(make_world: Make) -> None:
    """Dates are written in another style, in another zone and under another isolation level: the copy is the same."""
    world = make_world(days=2, history=False)
    run_sql(world, *(f"ALTER DATABASE {world.database} SET {setting}" for setting in SETTINGS))
    run = world.lake.to("published")
    assert [one.state for one in world.items()] == ["paid"]
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    assert [one.state for one in world.items()] == ["paid", "paid"]
    run_sql(world, f"ALTER DATABASE {world.database} RESET ALL")
    assert world.rows() == world.lake.wrong()


@pytest.mark.parametrize(
    "accident, told",
    [
        (["ALTER TABLE shop.sales RENAME TO sales_old"], "there is no table shop.sales in pg"),
        (["ALTER TABLE shop.sales ALTER gross TYPE numeric(10,1)"], "column gross cannot hold gross (decimal(12, 2))"),
        (["ALTER TABLE shop.sales ADD note text"], "column note of the copy gets no value"),
        (["ALTER TABLE shop.sales ADD CONSTRAINT few CHECK (n < 0)"], "23514 CheckViolation (few)"),
        ([KEEP_ZERO, ON_INSERT], "are not those of the lake"),
        ([DROP_ROW, ON_INSERT], "expected 3 rows to be inserted, found 0"),
    ],
    ids=["renamed", "type", "column", "constraint", "changing-trigger", "dropping-trigger"],
)
def test_a_copy_that_does_not_fit_any_more_says_how(make_world: Make, accident: list[str], told: str) -> None:
    """Between plan and delivery somebody changed the table: nothing is written, and the rows are still owed."""
    world = make_world(days=1, history=False)
    run_sql(world, *accident)
    world.lake.to("published")
    [item] = world.items()
    assert (item.state, told in (item.last_error or "")) == (ItemState.OWED, True), item.last_error
    table = "sales_old" if "RENAME" in accident[0] else "sales"
    assert run_sql(world, f"SELECT count(*) FROM shop.{table}") == [(0,)]
    assert world.staging() == []
    if table == "sales_old":
        run_sql(world, "ALTER TABLE shop.sales_old RENAME TO sales")


def test_a_role_without_rights_is_told_which_one_is_missing(make_world: Make, clock: Clock) -> None:
    """The delivery lands as soon as it has them; tables next to the copy may be made by an administrator."""
    world = make_world(days=1, history=False)
    role = f"weak_{world.database}"
    grants = [f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA shop TO {role}"]
    run_sql(world, *grants, f"GRANT SELECT ON shop.sales TO {role}")
    world.connect(world.lake.engines, world.server.url(world.database, role=role).replace("+psycopg", ""))
    world.lake.to("published")
    [item] = world.items()
    assert (item.state, item.last_error) == (
        ItemState.OWED,
        "pg refused a statement with 42501 InsufficientPrivilege: permission denied for schema shop",
    )
    run_sql(world, f"GRANT CREATE ON SCHEMA shop TO {role}")
    clock.move(86_400)
    pay(world.lake.workspace, ACTOR, seconds=60)
    [item] = world.items()
    assert "permission denied for table sales" in (item.last_error or "")
    assert world.rows() == []
    run_sql(world, f"GRANT INSERT, DELETE, UPDATE ON shop.sales TO {role}")
    pay_until_it_ends(world, clock)
    assert world.rows() == world.lake.expected()
    # what the role made stays, for the checker
    run_sql(world, f"REASSIGN OWNED BY {role} TO CURRENT_USER", f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize("point", ["copy.after_load", "copy.after_open", "copy.after_compare", "copy.before_commit"])
def test_a_session_that_is_ended_by_an_administrator_leaves_nothing_half_done(
    make_world: Make, clock: Clock, point: str
) -> None:
    """Sessions and staging are lost at any step: the next attempt brings every row once."""
    world = make_world(days=2)
    world.accept()
    ended: list[Any] = []

    def end() -> None:
        if not ended:
            ended.append(point)
            run_sql(
                world,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'errata'"
                f" AND datname = '{world.database}' AND pid <> pg_backend_pid()",
            )

    with arm(point, end):
        world.lake.to("published")
        assert world.rows() in (world.lake.wrong(), world.lake.expected())
        pay_until_it_ends(world, clock)
    assert ended
    assert world.rows() == world.lake.expected()
    states = [state for publication, _, state in world.markers() if not publication.startswith("baseline")]
    assert (states.count("done"), "open" in states, world.staging()) == (1, False, [])


def test_a_server_that_crashes_between_marker_and_swap_loses_only_time(make_world: Make, clock: Clock) -> None:
    """Staging has no log, so a crash empties it: the swap finds that, and the next attempt loads again."""
    world = make_world(days=2)
    world.accept()
    crashed: list[int] = []

    def crash() -> None:
        if not crashed:
            crashed.append(1)
            world.server.kill()
            world.server.start_again()

    with arm("copy.after_open", crash):
        world.lake.to("published")
        assert world.rows() == world.lake.wrong()
        pay_until_it_ends(world, clock)
    assert world.rows() == world.lake.expected()
    states = [state for publication, _, state in world.markers() if not publication.startswith("baseline")]
    assert states == ["void", "done"]
    assert world.staging() == []


PARTITIONED = (
    CREATE[0],
    """CREATE TABLE shop.sales (day date, account text, gross numeric(12,2), n bigint,
        twice numeric GENERATED ALWAYS AS (gross * 2) STORED) PARTITION BY RANGE (day)""",
    "CREATE TABLE shop.sales_all PARTITION OF shop.sales FOR VALUES FROM ('2000-01-01') TO ('2100-01-01')",
)


def test_a_partitioned_table_with_a_generated_column_is_a_copy_like_any_other(make_world: Make) -> None:
    """PostgreSQL's own partitions and computed columns are its business."""
    world = make_world(days=2, history=False, create=PARTITIONED)
    run = world.lake.to("published")
    assert world.rows() == world.lake.expected()
    world.lake.client.rollback(run, reason="wrong rates", as_="bo")
    assert world.rows() == world.lake.wrong()
    assert run_sql(world, "SELECT count(*) FROM shop.sales WHERE twice = gross * 2") == [(6,)]
    assert world.staging() == []


def test_names_are_taken_letter_by_letter(make_world: Make) -> None:
    """Upper case, in the schema, the table and its columns, is what the product says."""
    create = (
        'CREATE SCHEMA "Shop"',
        'CREATE TABLE "Shop"."SALES" ("DAY" date, "Account" text, gross numeric(12,2), "N" bigint)',
        'CREATE INDEX ON "Shop"."SALES" ("DAY")',
    )
    world = make_world(days=1, history=False, create=create, copy="{warehouse: pg, table: Shop.SALES}")
    world.lake.to("published")
    assert [one.state for one in world.items()] == ["paid"], world.items()[0].last_error
    found = run_sql(world, 'SELECT "DAY"::text, "Account", gross, "N" FROM "Shop"."SALES" ORDER BY 1, 2')
    assert [tuple(row) for row in found] == world.lake.expected()
    beside = "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'Shop'"
    assert {"errata_markers_SALES", "errata_delivered_SALES"} <= {row[0] for row in run_sql(world, beside)}


def test_a_character_that_the_database_cannot_hold_is_named_and_not_the_text(make_world: Make) -> None:
    """PostgreSQL has no U+0000 in texts; nothing is loaded, and no value is in the error."""
    world = make_world(days=1, history=False)
    run_sql(world, "CREATE TABLE shop.staged (account text)")
    batches = iter([pa.RecordBatch.from_pydict({"account": ["secret\0", "plain"]})])
    url = world.server.url(world.database)
    with pytest.raises(EngineError, match="such as U\\+0000") as refused:
        load_batches("pg", url, "shop", "staged", batches)
    assert "secret" not in str(refused.value)
    assert world.ask("SELECT count(*) FROM shop.staged") == [(0,)]
