"""Kafka Connect with Debezium's connector for one PostgreSQL database: one process that tests stop, kill and start.

A table goes to the topic ``PREFIX.SCHEMA.TABLE``, ends of transactions to ``PREFIX.transaction``. The topics are made
before the connector starts, so that they keep everything.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from support.jars import debezium, kafka_connect, missing, there
from support.kafka import KafkaBroker
from support.postgres import PostgresServer, free_port

__all__ = ["LOGICAL", "Connector", "find_reason"]

_LIMIT_SECONDS = 120
LOGICAL = (
    "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "wal_level=logical", "max_wal_senders=4",
    "max_replication_slots=4", "autovacuum=off", "shared_buffers=32MB", "timezone=UTC",
)  # fmt: skip
"""Settings of a server whose log a connector can read."""
_WORKER = """
bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={directory}/offsets
offset.flush.interval.ms={flush}
plugin.path={directory}/plugins
plugin.discovery=service_load
listeners=http://127.0.0.1:{port}
rest.advertised.host.name=127.0.0.1
"""
_CONNECTOR = """
name=source
connector.class=io.debezium.connector.postgresql.PostgresConnector
tasks.max=1
plugin.name=pgoutput
database.hostname=127.0.0.1
database.port={database_port}
database.user=errata
database.password=none
database.dbname={database}
topic.prefix={prefix}
table.include.list={tables}
slot.name={slot}
publication.name={slot}
publication.autocreate.mode=filtered
snapshot.mode=initial
decimal.handling.mode=string
time.precision.mode=microseconds
skipped.operations=none
provide.transaction.metadata=true
topic.creation.default.partitions=1
topic.creation.default.replication.factor=1
"""


def find_reason() -> str | None:
    """Why there is no connector; None if there is one."""
    return missing(kafka_connect()) or missing(debezium())


@dataclass
class Connector:
    """One worker of Kafka Connect with one connector; ``flush_ms`` is how often it notes how far it came."""

    broker: KafkaBroker
    server: PostgresServer
    database: str
    tables: tuple[str, ...]
    prefix: str
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="errata-connect-")))
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls, broker: KafkaBroker, server: PostgresServer, database: str, tables: tuple[str, ...], prefix: str
    ) -> Self:
        """Make the topics, start the connector, and wait until it reads the log."""
        made = cls(broker, server, database, tables, prefix)
        plugin = made.directory / "plugins" / "debezium"
        plugin.mkdir(parents=True)
        for jar in there(debezium()):
            (plugin / jar.name).symlink_to(jar)
        for table in tables:
            broker.make_topic(2, f"{prefix}.{table}")
        broker.make_topic(1, made.transactions)
        made.start_again()
        return made

    @property
    def transactions(self) -> str:
        """The topic with the ends of transactions."""
        return f"{self.prefix}.transaction"

    @property
    def slot(self) -> str:
        """The replication slot."""
        return self.prefix.replace("-", "_")

    @property
    def log(self) -> Path:
        """What the worker wrote."""
        return self.directory / "log"

    def start_again(self, flush_ms: int = 100) -> None:
        """Start the worker; returns when the slot is in use, so that nothing committed from now on is missed."""
        worker, connector = self.directory / "worker.properties", self.directory / "connector.properties"
        worker.write_text(
            _WORKER.format(bootstrap=self.broker.bootstrap, directory=self.directory, flush=flush_ms, port=free_port()),
            "utf-8",
        )
        connector.write_text(
            _CONNECTOR.format(
                database_port=self.server.port, database=self.database, prefix=self.prefix, slot=self.slot,
                tables=",".join(self.tables),
            ),
            "utf-8",
        )  # fmt: skip
        java = ["java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java += ["-cp", os.pathsep.join(map(str, there(kafka_connect())))]
        with self.log.open("ab") as out:
            self.process = self._launch([*java, _MAIN, str(worker), str(connector)], out)
        self._wait()

    def _launch(self, command: list[str], out: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def kill(self) -> None:
        """End it at once: what it sent since the last flush comes again."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def forget(self) -> None:
        """Lose the file of offsets: the next start reads the whole table again."""
        (self.directory / "offsets").unlink(missing_ok=True)

    def remove(self) -> None:
        """End it and remove its files."""
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(_LIMIT_SECONDS)
        self.process = None
        asked = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{self.slot}'"
        self._until(lambda: not any(row[0] for row in self.server.execute(asked, database=self.database)))

    def _wait(self) -> None:
        # a slot that is still being made is active too, but has no position yet
        known = "active AND confirmed_flush_lsn IS NOT NULL"
        asked = f"SELECT {known} FROM pg_replication_slots WHERE slot_name = '{self.slot}'"
        self._until(lambda: any(row[0] for row in self.server.execute(asked, database=self.database)))

    def _until(self, holds: object) -> None:
        until = time.monotonic() + _LIMIT_SECONDS
        while not holds():  # type: ignore[operator]
            if time.monotonic() > until or (self.process is not None and self.process.poll() is not None):
                raise TimeoutError(self.log.read_text("utf-8", "replace")[-4000:])
            time.sleep(0.2)


_MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"
