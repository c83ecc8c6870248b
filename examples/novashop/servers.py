"""NovaShop's servers: a Kafka broker and a PostgreSQL server of the demo's own, on the loopback interface.

The broker is the one that the tests start, from the same verified jars. PostgreSQL has the table of the order service
and the warehouse's copy of the events. A server that is not here is a sentence, never a traceback.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from examples.finsight.warehouse import NotHere, start_postgres
from examples.finsight.workshop import ROOT, DemoError
from examples.novashop import shop
from examples.novashop.stream import ORIGINS, SHAPE, TOPIC

if TYPE_CHECKING:
    from support.kafka import KafkaBroker

_PER_SECOND = 40
_TYPES = {"string": "text", "timestamp": "timestamptz", "decimal(3,2)": "numeric(3,2)"}


@contextmanager
def open_broker() -> Iterator[KafkaBroker]:
    """A broker with the empty topic; it ends with the block."""
    if find_spec("confluent_kafka") is None:
        raise DemoError('Kafka\'s client is not installed; pip install "errata[kafka]", or: make demo-novashop')
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    from support.kafka import KafkaBroker, find_reason

    if reason := find_reason():
        raise DemoError(f"there is no Kafka broker on this machine: {reason}")
    broker = KafkaBroker.start()
    try:
        broker.make_topic(2, TOPIC)
        yield broker
    finally:
        broker.stop()


@dataclass(frozen=True, slots=True)
class Database:
    """The PostgreSQL server, read and written with psycopg alone."""

    title: str
    uri: str

    def execute(self, statement: str, rows: Sequence[Sequence[Any]] = (), values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement, once or for each row."""
        import psycopg

        with psycopg.connect(self.uri, autocommit=True) as conn, conn.cursor() as cursor:
            if rows:
                cursor.executemany(statement.encode(), rows)
                return []
            cursor.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def fill(self) -> None:
        """The orders of today, and the copy of nine hours of events as the nightly job left it: with the hole."""
        today = shop.live_monday()
        self.execute("CREATE SCHEMA shop")
        self.execute("CREATE SCHEMA raw")
        self.execute("CREATE TABLE shop.orders (order_id text, ordered_at timestamptz, user_id text, product_id text)")
        columns = [part.split(" ") for part in f"{SHAPE}, {ORIGINS}".split(", ")]
        self.execute(f"CREATE TABLE raw.events ({', '.join(f'{name} {_TYPES[kind]}' for name, kind in columns)})")
        orders = [(f"o-{event.event_id}", event.ts, event.user_id, event.product_id) for event in today.orders]
        self.execute("INSERT INTO shop.orders VALUES (%s, %s, %s, %s)", orders)
        lost = [event for event in today.recorded if event.ts.hour in shop.LOST]
        rows = [(e.event_id, e.ts, e.user_id, e.action, e.product_id) for e in lost]
        self.execute("INSERT INTO raw.events VALUES (%s, %s, %s, %s, %s)", rows)


@contextmanager
def open_database() -> Iterator[Database]:
    """The server with its tables; its data is deleted when it stops."""
    try:
        with start_postgres() as server:
            found = Database(server.title, server.uri)
            found.fill()
            yield found
    except NotHere as error:
        raise DemoError(f"NovaShop's orders are in PostgreSQL, and there is none: {error}") from None


@dataclass
class App:
    """The app: sends events to the topic, without a pause, until the demo ends."""

    broker: KafkaBroker
    sent: list[shop.Event] = field(default_factory=list)
    closed: frozenset[str] = frozenset()  # accounts of users who are gone

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more; everything sent is in the topic."""
        self._over.set()
        self._thread.join(30)

    def send(self, events: Sequence[shop.Event]) -> None:
        """Send these now."""
        self.broker.send(TOPIC, [{"value": encode(event), "key": event.user_id.encode()} for event in events])
        self.sent += events

    def _run(self) -> None:
        events = shop.live_events(0)
        while not self._over.wait(1):
            some = [next(events) for _ in range(_PER_SECOND)]
            self.send([event for event in some if event.user_id not in self.closed])


def encode(event: shop.Event) -> bytes:
    """An event as the app sends it."""
    told = {"event_id": event.event_id, "ts": f"{event.ts.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}",
            "user_id": event.user_id, "action": event.action, "product_id": event.product_id}  # fmt: skip
    return json.dumps(told).encode()


def write_logs(project: Path) -> None:
    """What the gateway and the clients drop: API logs by hour, retry buffers late, some of them twice."""
    today, landing = shop.live_monday(), project / "landing"
    for name in ("api", "retry"):
        (landing / name).mkdir(parents=True)
    for hour in shop.HOURS:
        stamp = f"{shop.MONDAY:%Y-%m-%d}-{hour:02d}"
        lines = []
        for request in today.requests:
            if request.ts.hour == hour:
                told = {"request_id": request.request_id, "client_event_id": request.client_event_id,
                        "ts": request.ts.isoformat(timespec="milliseconds"), "user_id": request.user_id,
                        "route": request.route, "product_id": request.product_id}  # fmt: skip
                if hour == shop.WITHOUT_ID:
                    del told["client_event_id"]
                lines.append(json.dumps(told))
        (landing / "api" / f"api_{stamp}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        if hour in shop.LOST:
            mine = [encode(event).decode() for event in today.retried if event.ts.hour == hour]
            for part, rows in enumerate((mine[::2], mine[1::2], mine[: len(mine) // 2])):  # the third repeats rows
                (landing / "retry" / f"retry_{stamp}_{part}.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
            again = landing / "retry" / f"retry_{stamp}_0-again.jsonl"
            again.write_text((landing / "retry" / f"retry_{stamp}_0.jsonl").read_text("utf-8"), "utf-8")
