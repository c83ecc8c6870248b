"""Redis and PostgreSQL keep the contracts of the ports to consumers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from errata.engines.consumers.postgres_database import PostgresWatermarks
from errata.engines.consumers.systems import DeclaredSystems
from errata.engines.copies.postgres_copies import PostgresCopies
from errata.model.consumer.declaration import WatermarkState
from errata.model.copy.column_types import to_postgres_type
from errata.model.copy.marker import Marker
from errata.model.copy.table import CopyTable
from errata.testing.contracts import CacheContract, CopyContract, WatermarkContract
from errata.testing.contracts.copies import COLUMNS, build_copy
from support.postgres import PostgresServer
from support.redis import RedisServer


@dataclass
class RedisSubject:
    server: RedisServer

    @property
    def uri(self) -> str:
        return self.server.uri

    @property
    def systems(self) -> DeclaredSystems:
        return DeclaredSystems(Path(), {})

    def fill(self, values: Mapping[str, str]) -> None:
        self.server.client.mset(dict(values))

    def keys(self) -> set[str]:
        return set(self.server.client.keys())


class TestRedis(CacheContract):
    """A real Redis server."""

    @pytest.fixture
    def cache_subject(self, cache: RedisServer) -> RedisSubject:
        return RedisSubject(cache)


@dataclass
class PostgresSubject:
    server: PostgresServer
    database: str

    @property
    def state(self) -> WatermarkState:
        return WatermarkState("pg", "etl.state", {"job": "features", "tier": "1"}, "High")

    @property
    def watermarks(self) -> PostgresWatermarks:
        return PostgresWatermarks({"pg": self.server.url(self.database)})

    def put(self, value: str | None) -> None:
        told = "NULL" if value is None else f"'{value}'"
        self.server.execute(f"UPDATE etl.state SET \"High\" = {told} WHERE job = 'features'", database=self.database)


class TestPostgres(WatermarkContract):
    """A real PostgreSQL server."""

    @pytest.fixture
    def watermark_subject(self, postgres: PostgresServer) -> Iterator[PostgresSubject]:
        name = f"etl_{uuid.uuid4().hex[:8]}"
        postgres.create_database(name)
        postgres.execute(
            "CREATE SCHEMA etl",
            'CREATE TABLE etl.state (job text, tier int, "High" date)',
            "INSERT INTO etl.state VALUES ('features', 1, NULL), ('other', 1, '2026-01-09')",
            database=name,
        )
        yield PostgresSubject(postgres, name)
        assert postgres.execute("SELECT \"High\"::text FROM etl.state WHERE job = 'other'", database=name) == [
            ("2026-01-09",)
        ]
        postgres.drop_database(name)


@dataclass
class PostgresCopySubject:
    server: PostgresServer
    database: str
    can_keep_writers_out: bool = True

    @property
    def copy(self) -> CopyTable:
        return build_copy("pg", "Fin.daily")

    @property
    def copies(self) -> PostgresCopies:
        return PostgresCopies({"pg": self.server.url(self.database)})

    def put(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._connect() as conn:
            for row in rows:
                conn.execute(
                    f'INSERT INTO "Fin".daily VALUES ({", ".join(["%s"] * len(COLUMNS))})',
                    [row[column.name] for column in COLUMNS],
                )

    def rows(self) -> list[dict[str, Any]]:
        with self._connect() as conn:
            found = conn.execute('SELECT * FROM "Fin".daily').fetchall()
        return [dict(zip((column.name for column in COLUMNS), row, strict=True)) for row in found]

    @contextmanager
    def hold_table(self) -> Iterator[None]:
        with self._connect() as conn:
            conn.execute('LOCK TABLE "Fin".daily IN ROW EXCLUSIVE MODE')
            yield
            conn.rollback()

    @contextmanager
    def hold_marker(self, marker: Marker) -> Iterator[None]:
        with self._connect() as conn:
            found = conn.execute(
                "UPDATE \"Fin\".errata_markers_daily SET state = 'done' WHERE publication = %s AND attempt = %s",
                (marker.publication, marker.attempt),
            )
            assert found.rowcount == 1
            yield
            conn.rollback()

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.server.url(self.database).replace("+psycopg", ""), options="-c TimeZone=UTC")


class TestPostgresCopies(CopyContract):
    """A copy in a real PostgreSQL server."""

    @pytest.fixture
    def copy_subject(self, postgres: PostgresServer) -> Iterator[PostgresCopySubject]:
        name = f"copy_{uuid.uuid4().hex[:8]}"
        postgres.create_database(name)
        columns = ", ".join(f"{column.name} {to_postgres_type(column.type)}" for column in COLUMNS)
        postgres.execute('CREATE SCHEMA "Fin"', f'CREATE TABLE "Fin".daily ({columns})', database=name)
        yield PostgresCopySubject(postgres, name)
        postgres.drop_database(name)
