"""A copy in the Snowflake emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.engines.copies.snowflake_statements import Statements, quote
from errata.model.copy.marker import Marker
from errata.model.copy.snowflake_account import SnowflakeAccount
from errata.model.copy.table import CopyTable
from errata.testing.contracts.copies import COLUMNS, Row, build_copy
from support.fakesnow import FakeSnowflake

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection

TYPES = {
    "date": "date", "long": "number(19,0)", "int": "number(10,0)", "string": "varchar", "boolean": "boolean",
    "decimal(12, 2)": "number(12,2)", "decimal(38, 18)": "number(38,18)", "timestamptz": "timestamp_tz",
    "timestamp": "timestamp_ntz", "double": "float",
}  # fmt: skip


@cache
def make_key() -> str:
    """A private key, as a person would create one."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def make_account(server: FakeSnowflake, database: str, *, port: int | None = None) -> SnowflakeAccount:
    """The account that a database of the emulator is."""
    host = f"http://127.0.0.1:{port or server.port}"
    return SnowflakeAccount("fakesnow", "errata", make_key(), "BACKFILL", "BACKFILL_WH", database, "PUBLIC", host=host)


@dataclass
class SnowflakeSubject:
    """See the protocol of subjects."""

    server: FakeSnowflake
    database: str
    can_keep_writers_out: bool = False

    def __post_init__(self) -> None:
        columns = ", ".join(f"{quote(one.name)} {TYPES[one.type]}" for one in COLUMNS)
        self.server.execute(f"create table {self.table} ({columns})")

    @property
    def copy(self) -> CopyTable:
        return build_copy("snow", "DAILY")

    @property
    def copies(self) -> SnowflakeCopies:
        return SnowflakeCopies({"snow": make_account(self.server, self.database)})

    @property
    def table(self) -> str:
        return f'"{self.database}"."PUBLIC"."DAILY"'

    def put(self, rows: Sequence[Row]) -> None:
        with self.connect() as conn:
            self.insert(conn, rows)

    def insert(self, conn: SnowflakeConnection, rows: Sequence[Row]) -> None:
        """Insert rows in a session of someone else."""
        holes = ", ".join("%s" for _ in COLUMNS)
        for row in rows:
            values = [row[one.name] for one in COLUMNS]
            conn.cursor().execute(f"insert into {self.table} select {holes}", values)

    def rows(self) -> list[Row]:
        names = ", ".join(quote(one.name) for one in COLUMNS)
        with self.connect() as conn:
            found = conn.cursor().execute(f"select {names} from {self.table}").fetchall()
        return [dict(zip((one.name for one in COLUMNS), row, strict=True)) for row in found]

    def connect(self, **options: Any) -> Any:
        """A session of someone else."""
        return self.server.connect(database=self.database, schema="PUBLIC", **options)

    @contextmanager
    def hold_table(self) -> Iterator[None]:
        raise AssertionError("nothing keeps writers out")
        yield

    @contextmanager
    def hold_marker(self, marker: Marker) -> Iterator[None]:
        table = Statements(self.copy).markers
        with self.connect(autocommit=False) as conn:
            conn.cursor().execute("begin")
            wanted = f"PUBLICATION in ('', '{marker.publication}')"
            changed = conn.cursor().execute(f"update {table} set STATE = 'done', CHANGES = CHANGES + 1 where {wanted}")
            assert changed.rowcount == 2
            yield
            conn.cursor().execute("rollback")
