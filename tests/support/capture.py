"""A story of one table that a real connector sends: PostgreSQL, Debezium in Kafka Connect, and a broker.

Transactions overlap and commit in another order than they wrote, one was open while the connector began, keys change,
the table is truncated and gets a column, the connector is killed and repeats itself, and it loses its offsets and reads
the table again. After every commit the story notes the position of the log and what the table holds.

``python -m support.capture DIRECTORY`` plays the story once and writes the messages down.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.connect import LOGICAL, Connector
from support.kafka import KafkaBroker
from support.postgres import PostgresServer

if TYPE_CHECKING:
    import psycopg

__all__ = ["CaptureRig", "Mark", "read_messages"]

TABLE, DATABASE = "public.orders", "shop"
_LIMIT_SECONDS = 60
_COLUMNS = """
id::text, account, amount::text, (extract(epoch FROM created) * 1000000)::bigint::text, due::text,
(extract(epoch FROM changed) * 1000000)::bigint::text
"""


@dataclass(frozen=True)
class Mark:
    """What the table held when everything up to a position had been committed."""

    position: int
    rows: dict[str, list[str | None]]  # id → account, amount, created, due, changed, note
    is_sent: bool = True  # the connector was running, or its next snapshot shows it


@dataclass
class CaptureRig:
    """A database, a connector and a broker, and a table that changes."""

    broker: KafkaBroker
    server: PostgresServer
    prefix: str
    choose: random.Random
    connector: Connector | None = None
    marks: list[Mark] = field(default_factory=list)
    has_note: bool = False
    _next: int = 100
    _last: int = 0  # id of the last transaction
    _transactions: list[tuple[psycopg.Connection[Any], set[int]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def start(cls, broker: KafkaBroker, prefix: str, seed: int = 7) -> Iterator[CaptureRig]:
        """A server with the table and eight rows; nothing reads its log yet."""
        server = PostgresServer.start(settings=LOGICAL)
        rig = cls(broker, server, prefix, random.Random(seed))  # noqa: S311 - repeatable, no secret
        try:
            server.execute(f"CREATE DATABASE {DATABASE}")
            rig.sql(
                "CREATE TABLE orders (id bigint PRIMARY KEY, account text NOT NULL, amount numeric(12,2), "
                "created timestamptz NOT NULL, due date, changed timestamp)",
                "ALTER TABLE orders REPLICA IDENTITY FULL",
            )
            with rig.connect() as connection:
                for _ in range(8):
                    rig.insert(connection)
            yield rig
        finally:
            for connection, _ in rig._transactions:
                connection.close()
            if rig.connector is not None:
                rig.connector.remove()
            server.remove()

    def sql(self, *statements: str) -> list[Any]:
        """Statements outside of transactions, in the database of the table."""
        return self.server.execute(*statements, database=DATABASE)

    def connect(self) -> psycopg.Connection[Any]:
        """A connection whose transaction ends with its block."""
        import psycopg

        return psycopg.connect(f"postgresql://errata@127.0.0.1:{self.server.port}/{DATABASE}")

    def begin_capture(self) -> None:
        """Start the connector while transactions are open: one writes before its snapshot, and commits after it."""
        first, second, third = self.connect(), self.connect(), self.connect()
        first_id = self._update_account(first, 101, "before")
        failures: list[BaseException] = []

        def start() -> None:
            try:
                tables = (TABLE,)
                self.connector = Connector.start(self.broker, self.server, DATABASE, tables, self.prefix)
            except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the test
                failures.append(error)

        starting = threading.Thread(target=start)
        starting.start()
        # a slot waits twice: for what ran when it began, then for what ran when it had seen the end of that
        self._await_lock(first_id)
        second_id = self._update_account(second, 102, "during")
        first.commit()
        self._await_lock(second_id)
        self._update_account(third, 103, "in flight")
        second.commit()
        starting.join(_LIMIT_SECONDS)
        first.close()
        second.close()
        if failures:
            raise failures[0]
        self._end((third, {103}), is_kept=True)
        self.wait()

    def _update_account(self, connection: psycopg.Connection[Any], key: int, text: str) -> int:
        connection.execute("UPDATE orders SET account = %s WHERE id = %s", (text, key))
        return _read_id(connection)

    def _await_lock(self, transaction: int) -> None:
        """Wait until the connector waits for the end of a transaction."""
        asked = f"SELECT 1 FROM pg_locks WHERE NOT granted AND transactionid::text = '{transaction}'"
        self._until(lambda: bool(self.sql(asked)))

    def play(self) -> None:
        """The whole story, up to its last commit, and wait until it was sent."""
        assert self.connector is not None
        self.step(60)
        self.end_open()
        emptying = self.connect()
        self.insert(emptying)
        emptying.execute("TRUNCATE orders")
        self._end((emptying, {0}), is_kept=True)
        self.step(40)
        self.end_open()
        self.wait()
        # a connector that is killed has not noted what it sent since its last flush
        self.connector.stop()
        self.connector.start_again(flush_ms=3_600_000)
        self.step(30)
        self.end_open()
        self.wait()
        self.connector.kill()
        self.step(8)
        self.end_open()
        self.connector.start_again()
        self.step(20)
        self.end_open()
        self.wait()
        self.connector.stop()
        self.connector.forget()
        first_lost = len(self.marks)
        self.step(12)
        self.end_open()
        before = self._count_snapshots()
        self.connector.start_again()
        self._until(lambda: self._count_snapshots() > before)
        self.marks[first_lost:] = [Mark(one.position, one.rows, is_sent=False) for one in self.marks[first_lost:]]
        self.sql("ALTER TABLE orders ADD COLUMN note text DEFAULT 'n/a'")
        self.has_note = True
        self.step(50)
        self.end_open()
        self.wait()

    def step(self, count: int) -> None:
        """Some random acts in up to three open transactions."""
        for _ in range(count):
            act = self.choose.random()
            if not self._transactions or (act < 0.2 and len(self._transactions) < 3):
                self._transactions.append((self.connect(), set()))
            if act < 0.7:
                self._change(*self.choose.choice(self._transactions))
            else:
                self._end(self._transactions.pop(self.choose.randrange(len(self._transactions))), is_kept=act < 0.95)

    def end_open(self) -> None:
        """Commit what is open."""
        while self._transactions:
            connection, touched = self._transactions.pop()
            if not touched:
                self._change(connection, touched)
            self._end((connection, touched), is_kept=True)

    def _end(self, one: tuple[psycopg.Connection[Any], set[int]], *, is_kept: bool) -> None:
        connection, touched = one
        if not is_kept:
            connection.rollback()
        else:
            # a transaction that changed nothing has no END
            self._last = _read_id(connection) if touched else self._last
            connection.commit()
        connection.close()
        if is_kept and touched:
            self.note()

    def _change(self, connection: psycopg.Connection[Any], touched: set[int]) -> None:
        locked = {key for other, keys in self._transactions if other is not connection for key in keys}
        rows = [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY id").fetchall()]
        free = [key for key in rows if key not in locked]
        act = self.choose.random()
        if act < 0.4 or not free:
            touched.add(self.insert(connection))
            return
        key = self.choose.choice(free)
        touched.add(key)
        if act < 0.5:
            day = self.choose.randint(1, 3)
            connection.execute(
                "UPDATE orders SET created = %s WHERE id = %s", (f"2026-01-0{day}T12:00:00.000001Z", key)
            )
        elif act < 0.75:
            connection.execute(
                "UPDATE orders SET amount = %s, changed = changed + interval '1 second' WHERE id = %s",
                (f"{self.choose.randint(1, 9999)}.{self.choose.randint(0, 99):02d}", key),
            )
        elif act < 0.9:
            connection.execute("DELETE FROM orders WHERE id = %s", (key,))
        else:
            self._next += 1
            touched.add(self._next)
            connection.execute("UPDATE orders SET id = %s WHERE id = %s", (self._next, key))

    def insert(self, connection: psycopg.Connection[Any]) -> int:
        """A new order of one of three days."""
        self._next += 1
        day = self.choose.randint(1, 3)
        connection.execute(
            "INSERT INTO orders (id, account, amount, created, due, changed) VALUES (%s, %s, %s, %s, %s, %s)",
            (
                self._next, f"a{self.choose.randint(1, 4)}", f"{self.choose.randint(1, 500)}.50",
                f"2026-01-0{day}T{self.choose.randint(0, 23):02d}:30:00.123456Z", f"2026-02-0{day}", "2026-01-01 10:00",
            ),
        )  # fmt: skip
        return self._next

    def note(self) -> None:
        """The position of the log now, and what the table holds."""
        note = "note" if self.has_note else "NULL::text"
        rows = self.sql(f"SELECT {_COLUMNS}, {note} FROM orders ORDER BY id")
        self.marks.append(Mark(self.position, {row[0]: list(row[1:]) for row in rows}))

    @property
    def position(self) -> int:
        """Where the log of the database ends now."""
        return int(self.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0][0])

    def wait(self) -> None:
        """Wait until the connector has sent the end of the last commit."""
        assert self.connector is not None
        wanted, topic = f"{self._last}:", self.connector.transactions

        def is_sent() -> bool:
            marks = [json.loads(one["value"]) for one in read_messages(self.broker, topic)]
            return any(one["status"] == "END" and one["id"].startswith(wanted) for one in marks)

        self._until(is_sent)

    def _count_snapshots(self) -> int:
        sent = read_messages(self.broker, f"{self.prefix}.{TABLE}")
        values = [json.loads(one["value"]) for one in sent if one["value"]]
        return sum(one["source"]["snapshot"] == "last" for one in values)

    def _until(self, holds: Any) -> None:
        until = time.monotonic() + _LIMIT_SECONDS
        while not holds():
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.3)


def _read_id(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT txid_current()").fetchone()
    assert row is not None
    return int(row[0])


def read_messages(broker: KafkaBroker, topic: str) -> list[dict[str, Any]]:
    """Every record of a topic, as a line of a recording has it."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "support", "enable.auto.commit": False}
    consumer = Consumer({**settings, "log_level": 0})
    try:
        numbers = list(consumer.list_topics(topic, 10).topics[topic].partitions)
        ends = {number: consumer.get_watermark_offsets(TopicPartition(topic, number), 10) for number in numbers}
        left = {number: end - start for number, (start, end) in ends.items()}
        consumer.assign([TopicPartition(topic, number, ends[number][0]) for number in numbers])
        found: list[dict[str, Any]] = []
        until = time.monotonic() + _LIMIT_SECONDS
        while len(found) < sum(left.values()) and time.monotonic() < until:
            record = consumer.poll(1)
            if record is None or record.error():
                continue
            found.append(
                {
                    "topic": topic,
                    "partition": record.partition(),
                    "offset": record.offset(),
                    "timestamp": record.timestamp()[1],
                    "key": record.key().decode() if record.key() else None,
                    "value": record.value().decode() if record.value() else None,
                    "headers": json.dumps([[key, value.decode()] for key, value in record.headers() or []]),
                }
            )
        return sorted(found, key=lambda one: (one["partition"], one["offset"]))
    finally:
        consumer.close()


def _write_down(place: Path) -> None:
    broker = KafkaBroker.start()
    try:
        with CaptureRig.start(broker, "cdc") as rig:
            rig.begin_capture()
            rig.play()
            for name, topic in (("orders", f"cdc.{TABLE}"), ("transactions", "cdc.transaction")):
                lines = "".join(json.dumps(one) + "\n" for one in read_messages(broker, topic))
                (place / f"{name}.json.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
            told = [vars(one) for one in rig.marks]
            (place / "marks.json.gz").write_bytes(gzip.compress(json.dumps(told).encode(), mtime=0))
    finally:
        broker.stop()


if __name__ == "__main__":
    _write_down(Path(sys.argv[1]))
