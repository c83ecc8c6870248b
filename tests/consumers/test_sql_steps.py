"""SQL steps on a real PostgreSQL server."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from errata.engines.consumers.postgres_database import PostgresWatermarks
from errata.engines.consumers.systems import DeclaredSystems
from errata.errors import EngineError, UsageError
from errata.model.consumer.declaration import Refresh, Verify, WatermarkState
from errata.model.consumer.watermark import WatermarkType
from support.commit_proxy import CommitProxy, Loss
from support.postgres import PostgresServer

KEY = "bf-1-p1/published/recover/exec-dashboard"


@pytest.fixture
def systems(postgres: PostgresServer, database: str) -> DeclaredSystems:
    postgres.execute(
        "CREATE TABLE revenue (business_date date, tenant text, usd numeric(20, 2))",
        "INSERT INTO revenue VALUES ('2026-01-03', 'a', 10.10), ('2026-01-03', '*', 5), ('2026-01-04', 'a', 7)",
        "CREATE MATERIALIZED VIEW mv AS SELECT business_date, sum(usd) AS usd FROM revenue GROUP BY 1",
        "CREATE UNIQUE INDEX ON mv (business_date)",
        "CREATE TABLE told (what text)",
        database=database,
    )
    return DeclaredSystems(Path(), {"pg": postgres.url(database)})


def test_a_materialized_view_is_refreshed_and_read_back(
    systems: DeclaredSystems, postgres: PostgresServer, database: str
) -> None:
    """It shows old values until it is refreshed; statements that cannot run in a transaction block run."""
    verify = Verify("sum(usd)", sql="SELECT usd FROM mv WHERE business_date = '{partition}'", on="pg")
    names = ["2026-01-03", "2026-01-04", "2026-01-05"]
    postgres.execute("UPDATE revenue SET usd = usd * 2 WHERE tenant = 'a'", database=database)
    old = {"2026-01-03": "15.10", "2026-01-04": "7.00", "2026-01-05": None}
    assert systems.read_shown(verify, names, KEY) == old
    systems.refresh(Refresh(sql="REFRESH MATERIALIZED VIEW CONCURRENTLY mv", on="pg"), names, KEY)
    new = {"2026-01-03": "25.20", "2026-01-04": "14.00", "2026-01-05": None}
    assert systems.read_shown(verify, names, KEY) == new
    systems.refresh(Refresh(sql="VACUUM revenue", on="pg"), names, KEY)


def test_a_statement_runs_once_or_for_each_partition(
    systems: DeclaredSystems, postgres: PostgresServer, database: str
) -> None:
    """Values are parameters: quotes and percent signs in them, and in the statement, mean nothing."""
    each = Refresh(sql="INSERT INTO told SELECT '{partition}' || '%' WHERE 'a%' LIKE 'a\\%'", on="pg")
    hostile = ["x'); DROP TABLE told; --", "%s", "2026-01-03"]
    systems.refresh(each, hostile, KEY)
    systems.refresh(Refresh(sql="INSERT INTO told SELECT 'once%' WHERE 'b' LIKE '%b'", on="pg"), hostile, KEY)
    told = [what for (what,) in postgres.execute("SELECT what FROM told", database=database)]
    assert told == [*(f"{name}%" for name in hostile), "once%"]


def test_a_hostile_value_does_not_widen_a_query(systems: DeclaredSystems) -> None:
    """A tenant called x' OR '1'='1 has no rows."""
    verify = Verify("sum(usd)", sql="SELECT sum(usd) FROM revenue WHERE tenant = '{partition}'", on="pg")
    assert systems.read_shown(verify, ["*", "x' OR '1'='1"], KEY) == {"*": "5.00", "x' OR '1'='1": None}


def test_reading_back_cannot_write(systems: DeclaredSystems, postgres: PostgresServer, database: str) -> None:
    """A query that writes is refused by the server."""
    verify = Verify("count(*)", sql="INSERT INTO told VALUES ('{partition}') RETURNING 1", on="pg")
    with pytest.raises(EngineError, match="25006"):
        systems.read_shown(verify, ["1"], KEY)
    assert postgres.execute("SELECT count(*) FROM told", database=database) == [(0,)]


def test_more_than_one_value_is_refused(systems: DeclaredSystems) -> None:
    """Which of them does the consumer show?"""
    for query in ("SELECT usd FROM revenue WHERE business_date = '{partition}'", "SELECT 1, '{partition}'"):
        with pytest.raises(EngineError, match="the query"):
            systems.read_shown(Verify("sum(usd)", sql=query, on="pg"), ["2026-01-03"], KEY)


def test_a_statement_has_a_time_limit(systems: DeclaredSystems) -> None:
    """The server ends it."""
    with pytest.raises(EngineError, match="57014 QueryCanceled"):
        systems.refresh(Refresh(sql="SELECT pg_sleep(20)", on="pg", timeout_seconds=1), ["1"], KEY)


class _Silent(CommitProxy):
    """Takes a statement about silence and never answers, as a server behind a broken network."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.is_over = threading.Event()

    def __exit__(self, *failed: object) -> None:
        self.is_over.set()
        super().__exit__(*failed)

    def _loss(self, _session: object, _kind: bytes, body: bytes) -> Loss | None:
        return "before" if b"silence" in body else None

    def _lose(self, _how: Loss, client: socket.socket, server: socket.socket, _message: bytes) -> None:
        with client, server:
            self.is_over.wait(30)


def test_a_database_that_never_answers_costs_the_time_limit(postgres: PostgresServer, database: str) -> None:
    """The server cannot end the statement, so that the connection is cut; nothing is known of what it did."""
    with _Silent(postgres.port) as proxy:
        systems = DeclaredSystems(Path(), {"pg": postgres.url(database, port=proxy.port)})
        started = time.monotonic()
        with pytest.raises(EngineError, match=r"^the database did not answer within 3 s$"):
            systems.refresh(Refresh(sql="SELECT 'silence'", on="pg", timeout_seconds=1), ["2026-01-03"], KEY)
        assert time.monotonic() - started < 10


def test_errors_show_names_but_no_values(systems: DeclaredSystems) -> None:
    """A missing table is named; the value that did not fit a type is not."""
    with pytest.raises(EngineError, match='42P01 UndefinedTable: relation "nowhere" does not exist'):
        systems.refresh(Refresh(sql="DELETE FROM nowhere", on="pg"), ["1"], KEY)
    with pytest.raises(EngineError) as caught:
        systems.read_shown(Verify("x", sql="SELECT ('s3cret' || '{partition}')::int", on="pg"), ["1"], KEY)
    assert "s3cret" not in str(caught.value)
    unreachable = DeclaredSystems(Path(), {"pg": "postgresql://ana:s3cret@127.0.0.1:9/x"})
    with pytest.raises(EngineError, match=r"^the database cannot be reached: OperationalError$"):
        unreachable.refresh(Refresh(sql="SELECT 1", on="pg"), ["1"], KEY)


def test_watermarks_are_dates_times_or_names(postgres: PostgresServer, database: str) -> None:
    """Each type is read as its text; others are refused, because their order is unknown."""
    postgres.execute(
        "CREATE TABLE state (job text, d date, t timestamp, z timestamptz, x text, n bigint)",
        "INSERT INTO state VALUES ('f', '2026-01-20', '2026-01-20 13:45:11', '2026-01-20 13:45:11.5+02', '2026-01', 7)",
        "INSERT INTO state VALUES ('twice', NULL), ('twice', NULL)",
        database=database,
    )
    marks = PostgresWatermarks({"pg": postgres.url(database)})
    found = {column: marks.read(WatermarkState("pg", "state", {"job": "f"}, column)) for column in ("d", "t", "z", "x")}
    assert {column: (one.value, one.type) for column, one in found.items()} == {
        "d": ("2026-01-20", WatermarkType.DATE),
        "t": ("2026-01-20 13:45:11", WatermarkType.TIMESTAMP),
        "z": ("2026-01-20 11:45:11.500000+00:00", WatermarkType.TIMESTAMPTZ),
        "x": ("2026-01", WatermarkType.TEXT),
    }
    with pytest.raises(UsageError, match="expected date, timestamp or text, found bigint"):
        marks.read(WatermarkState("pg", "state", {"job": "f"}, "n"))
    with pytest.raises(UsageError, match="expected one row, found more"):
        marks.read(WatermarkState("pg", "state", {"job": "twice"}, "d"))
    z = WatermarkState("pg", "state", {"job": "f"}, "z")
    assert marks.move(z, "k", "2026-01-20 11:45:11.500000+00:00", "2026-01-02 23:59:59.999999+00:00")
    assert marks.read(z).value == "2026-01-02 23:59:59.999999+00:00"


def test_a_role_with_few_rights_can_move_a_watermark(postgres: PostgresServer, database: str) -> None:
    """If the table of keys exists, the grants of the guide are enough."""
    postgres.execute(
        "CREATE TABLE etl_state (job text PRIMARY KEY, high_water date)",
        "INSERT INTO etl_state VALUES ('f', '2026-01-20')",
        "CREATE TABLE errata_effects (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " old_value text, new_value text)",
        "DROP ROLE IF EXISTS mover",
        "CREATE ROLE mover LOGIN",
        "GRANT SELECT, UPDATE (high_water) ON etl_state TO mover",
        "GRANT SELECT, INSERT ON errata_effects TO mover",
        database=database,
    )
    marks = PostgresWatermarks({"pg": postgres.url(database, role="mover")})
    state = WatermarkState("pg", "etl_state", {"job": "f"}, "high_water")
    moved = marks.move(state, "k", "2026-01-20", "2026-01-02")
    assert moved is not None
    assert marks.read(state).value == "2026-01-02"
    postgres.execute("DROP OWNED BY mover", "DROP ROLE mover", database=database)
