"""`errata check` and `errata doctor` compare a copy with the table in a real PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from errata.errors import MissingDriver
from errata.wiring.check import check_workspace
from errata.wiring.copy_check import check_copies, find_copy_problems
from support.copy_world import CREATE, CopyWorld
from support.postgres import free_port

Make = Callable[..., CopyWorld]
COPY = "{warehouse: pg, table: shop.sales, default: [load_ts]}"
OBSTACLES = (
    "CREATE TABLE shop.days (day date PRIMARY KEY)",
    """CREATE TABLE shop.sales (
        day date REFERENCES shop.days, account varchar(40), gross numeric, n integer,
        id bigint GENERATED ALWAYS AS IDENTITY, load_ts timestamptz NOT NULL DEFAULT now(), note text)""",
    "CREATE FUNCTION shop.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TRIGGER watch_sales BEFORE INSERT ON shop.sales FOR EACH ROW EXECUTE FUNCTION shop.keep()",
    "ALTER TABLE shop.sales ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON shop.sales USING (true)",
    "CREATE RULE quiet AS ON DELETE TO shop.sales DO ALSO NOTHING",
)


def found(world: CopyWorld) -> list[tuple[str, str, str]]:
    return [(one.level, one.key, one.message.partition(": ")[2]) for one in find_copy_problems(world.lake.workspace)]


def test_a_copy_that_fits_has_no_problem(make_world: Make) -> None:
    """Nothing to say in check; doctor tells what is copied and what is not."""
    world = make_world(days=1)
    assert found(world) == []
    [check] = check_copies(world.lake.workspace)
    assert (check.name, check.ok) == ("copy pg:shop.sales", True)
    assert check.found == "4 columns of lake.fin.sales; not copied: produced_by_run_id, restatement_reason"


def test_rights_that_a_delivery_needs_are_asked_for_before_the_first_one(make_world: Make) -> None:
    """The role may see the columns and nothing else: check and doctor name the statements, which then are enough."""
    world = make_world(days=1, history=False)
    run = partial(world.server.execute, database=world.database)
    run("CREATE ROLE narrow LOGIN", "GRANT USAGE ON SCHEMA shop TO narrow")
    world.connect(world.lake.engines, world.server.url(world.database, role="narrow").replace("+psycopg", ""))
    try:
        [(level, key, text)] = found(world)
        assert (level, key) == ("problem", "target.copies[0].table")
        grants = text.partition(": ")[2].split("; ")
        assert grants == [
            "grant select, insert, delete on shop.sales to narrow",
            "grant create on schema shop to narrow",
        ]
        [check] = check_copies(world.lake.workspace)
        assert (check.ok, check.found) == (False, text)
        run(*grants)
        assert found(world) == []
        world.lake.to("published")
        assert world.rows() == world.lake.expected()
    finally:
        run("REASSIGN OWNED BY narrow TO CURRENT_USER", "DROP OWNED BY narrow", "DROP ROLE narrow")


def test_everything_that_is_wrong_is_found_in_one_pass(make_world: Make) -> None:
    """Types and columns are problems; the missing index, the trigger, the key, the policy and the rule are named."""
    world = make_world(
        days=1,
        history=False,
        create=(CREATE[0], *OBSTACLES),
        copy=COPY,
    )
    told = [(level, text) for level, _, text in found(world)]
    assert told == [
        ("problem", "column gross cannot hold gross (decimal(12, 2)) exactly: expected numeric(12,2), found numeric"),
        ("problem", "column n cannot hold n (long) exactly: expected bigint, found integer"),
        ("problem", "column note of the copy gets no value; name it under columns, or under default"),
        ("warning", "there is no index on day, so that every delivery reads the whole copy"),
        ("warning", "triggers of the copy meet every row that a delivery replaces: watch_sales"),
        ("warning", "foreign keys of the copy meet every row that a delivery replaces: sales_day_fkey"),
        ("warning", "row policies of the copy meet every row that a delivery replaces: mine, row security"),
        ("warning", "rules of the copy meet every row that a delivery replaces: quiet"),
    ]
    [check] = check_copies(world.lake.workspace)
    assert (check.ok, check.hint) == (False, "errata check")
    assert {one.file for one in check_workspace(world.lake.workspace) if "copies" in one.key} == {"products/sales.yaml"}


def test_a_table_that_is_not_there_is_named(make_world: Make) -> None:
    """And so is a view, which cannot be replaced partition by partition."""
    world = make_world(days=1, history=False, create=CREATE[:1])
    [(level, key, told)] = found(world)
    assert (level, key) == ("problem", "target.copies[0].table")
    assert told.startswith("there is no table shop.sales in pg; expected one with the columns of lake.fin.sales")
    world.server.execute("CREATE VIEW shop.sales AS SELECT 1 AS day", database=world.database)
    assert found(world) == [("problem", "target.copies[0].table", "sales is a view; expected a table")]


def test_a_warehouse_that_does_not_answer_is_one_problem(make_world: Make) -> None:
    """Of errata.yaml, without its address or password."""
    world = make_world(days=1, history=False)
    world.connect(world.lake.engines, f"postgresql://errata:open-sesame@127.0.0.1:{free_port()}/x")
    [problem] = find_copy_problems(world.lake.workspace)
    assert (problem.file, problem.key) == ("errata.yaml", "warehouses.pg")
    assert "pg cannot be reached" in problem.message
    assert "open-sesame" not in problem.message
    [check] = check_copies(world.lake.workspace)
    assert not check.ok


def test_what_is_missing_here_is_a_warning(make_world: Make) -> None:
    """A driver or a variable that another machine has: the sentence names it."""
    world = make_world(days=1, history=False)

    def refuse(_warehouse: str) -> None:
        raise MissingDriver("the Python package psycopg is missing", hint='pip install "errata[postgres-copy]"')

    world.lake.engines.copies = refuse
    [(level, key, told)] = found(world)
    assert (level, key) == ("warning", "target.copies[0]")
    assert told.endswith('the Python package psycopg is missing: pip install "errata[postgres-copy]"')
    [check] = check_copies(world.lake.workspace)
    assert (check.ok, check.hint) == (False, 'pip install "errata[postgres-copy]"')
