"""The small governed lake in memory with a copy in a real PostgreSQL database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from errata.engines.copies.postgres_copies import PostgresCopies
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Effect
from support.copy_invariants import assert_copy_invariants
from support.memory_world import MemoryWorld
from support.postgres import PostgresServer
from support.world import PRODUCT_FILE

__all__ = ["COPY", "CREATE", "CopyWorld", "build_product"]

COPY = "{warehouse: pg, table: shop.sales}"
CREATE = (
    "CREATE SCHEMA IF NOT EXISTS shop",
    "CREATE TABLE shop.sales (day date, account text, gross numeric(12,2), n bigint)",
    "CREATE INDEX ON shop.sales (day)",
)
PLAIN = "?sslmode=disable&gssencmode=disable"
"""A proxy speaks no TLS."""
Row = tuple[str, str, Decimal, int]


def build_product(copy: str = COPY, more: str = "") -> str:
    """The product file with this copy."""
    return PRODUCT_FILE.replace("  key: [day, account]\n", f"  key: [day, account]\n  copies: [{copy}]\n") + more


@dataclass
class CopyWorld:
    """A lake in memory, and a database that has the copy; ``port`` may be that of a proxy."""

    lake: MemoryWorld
    server: PostgresServer
    database: str

    @classmethod
    def make(
        cls,
        root: Path,
        server: PostgresServer,
        database: str,
        *,
        copy: str = COPY,
        create: Sequence[str] = CREATE,
        history: bool = True,
        more: str = "",
        port: int | None = None,
        **options: Any,
    ) -> CopyWorld:
        """Make the lake and an empty copy; with ``history`` the copy holds what the lake holds, as its baseline."""
        url = server.url(database, port=port).replace("+psycopg", "") + (PLAIN if port else "")
        project = f'\nwarehouses:\n  pg: {{type: postgres, uri: "{url}"}}\n'
        edit, extra = options.pop("edit", lambda text: text), options.pop("project", "")
        lake = MemoryWorld.make(root, product=edit(build_product(copy, more)), project=project + extra, **options)
        server.execute(*create, database=database)
        world = cls(lake, server, database)
        world.connect(lake.engines, url)
        if history:
            world.put(lake.rows())
        return world

    @staticmethod
    def connect(engines: Any, url: str) -> Any:
        """Let commands write to the real database instead of one in memory."""
        engines.copies = lambda _: PostgresCopies({"pg": url})
        return engines

    def put(self, rows: Sequence[Row]) -> None:
        """Insert rows, as another job does."""
        values = ", ".join(f"('{day}', '{account}', {gross}, {n})" for day, account, gross, n in rows)
        self.server.execute(f"INSERT INTO shop.sales (day, account, gross, n) VALUES {values}", database=self.database)

    def rows(self) -> list[Row]:
        """All rows of the copy, read by another client."""
        query = "SELECT day::text, account, gross, n FROM shop.sales ORDER BY 1, 2, 3, 4"
        return [tuple(row) for row in self.server.execute(query, database=self.database)]

    def markers(self) -> list[tuple[str, int, str]]:
        """Markers of the copy."""
        query = "SELECT publication, attempt, state FROM shop.errata_markers_sales ORDER BY 1, 2"
        return [tuple(row) for row in self.server.execute(query, database=self.database)]

    def staging(self) -> list[str]:
        """Staging tables that are left."""
        query = "SELECT relname FROM pg_class WHERE relname LIKE 'errata\\_stage%' AND relkind = 'r'"
        return [row[0] for row in self.server.execute(query, database=self.database)]

    def accept(self) -> None:
        """Accept what the copy holds as its beginning."""
        self.lake.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")

    def check(self, foreign: Collection[str] = ()) -> None:
        """Ledger and warehouse agree; in ``foreign`` partitions others have written since."""
        assert_copy_invariants(self.lake.root, self.ask, foreign=foreign)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The answer of the database that has the copy."""
        return [tuple(row) for row in self.server.execute(query, database=self.database)]

    def items(self) -> list[OutboxItem]:
        """Items of the copy, oldest first."""
        return [one for one in self.lake.ledger.outbox.list() if one.effect is Effect.COPY]
