"""Redis and PostgreSQL keep the contracts of the ports to consumers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from errata.engines.consumers.postgres_database import PostgresWatermarks
from errata.engines.consumers.systems import DeclaredSystems
from errata.model.consumer.declaration import WatermarkState
from errata.testing.contracts import CacheContract, WatermarkContract
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
