"""A Kafka broker of the tests' own: one process on free ports of 127.0.0.1, with its log in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from support.jars import kafka_broker, missing, there
from support.postgres import free_port

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

__all__ = ["KafkaBroker", "find_reason"]

_LIMIT_SECONDS = 90
_QUEUED = 50_000
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={directory}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
"""


def find_reason() -> str | None:
    """Why there is no broker; None if there is one."""
    return missing(kafka_broker()) or missing("kafka")


@dataclass
class KafkaBroker:
    """One broker."""

    process: subprocess.Popen[bytes]
    port: int
    directory: Path

    @classmethod
    def start(cls) -> Self:
        """Format a new log, start the broker and wait until it answers."""
        directory, port = Path(tempfile.mkdtemp(prefix="errata-kafka-")), free_port()
        settings = directory / "server.properties"
        settings.write_text(_SETTINGS.format(port=port, controller=free_port(), directory=directory), "utf-8")
        java = ["java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java += ["-cp", os.pathsep.join(map(str, there(kafka_broker())))]
        format_log = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQAGAAAAAAAAAAA", "-c", str(settings)]
        subprocess.run([*java, *format_log], check=True, capture_output=True, timeout=_LIMIT_SECONDS)
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        broker = cls(process, port, directory)
        broker._wait()
        return broker

    @property
    def bootstrap(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    @cached_property
    def admin(self) -> AdminClient:
        """A client of the tests."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": "0"})

    @cached_property
    def producer(self) -> Producer:
        """A producer of the tests."""
        from confluent_kafka import Producer

        # a producer that is not idempotent may change the order of records when it tries again
        return Producer({"bootstrap.servers": self.bootstrap, "log_level": "0", "enable.idempotence": True})

    def make_topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """A new topic that keeps records of any time for ever; ``retention__ms`` is retention.ms."""
        from confluent_kafka.admin import NewTopic

        topic = name or f"t-{uuid.uuid4().hex[:10]}"
        settings = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
        settings |= {key.replace("__", "."): value for key, value in config.items()}
        made = NewTopic(topic, partitions, 1, config=settings)
        self.admin.create_topics([made], operation_timeout=10)[topic].result(_LIMIT_SECONDS)
        until = time.monotonic() + _LIMIT_SECONDS
        while topic not in self.admin.list_topics(timeout=10).topics:
            assert time.monotonic() < until
            time.sleep(0.02)
        return topic

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until the name is free."""
        self.admin.delete_topics([topic], operation_timeout=10)[topic].result(_LIMIT_SECONDS)
        until = time.monotonic() + _LIMIT_SECONDS
        while topic in self.admin.list_topics(timeout=10).topics:
            if time.monotonic() > until:
                raise TimeoutError(topic)
            time.sleep(0.05)

    def configure(self, topic: str, **config: str) -> None:
        """Change settings of a topic; ``retention__ms`` is retention.ms."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entries = [
            ConfigEntry(key.replace("__", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        place = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([place])[place].result(_LIMIT_SECONDS)

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Remove the records before an offset, as retention does."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(topic, partition, before)
        next(iter(self.admin.delete_records([place]).values())).result(_LIMIT_SECONDS)

    def send(self, topic: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Produce records: value, and optionally key, partition, timestamp (ms) and headers."""
        errors: list[Any] = []

        def note(error: Any, _: Any) -> None:
            errors.extend([error] if error else [])

        for record in records:
            until = time.monotonic() + _LIMIT_SECONDS
            while len(self.producer) > _QUEUED:
                self.producer.poll(0.05)
                if time.monotonic() > until:
                    raise TimeoutError(topic)
            self.producer.produce(topic, **record, on_delivery=note)
            self.producer.poll(0)
        left = self.producer.flush(_LIMIT_SECONDS)
        assert (left, errors) == (0, [])

    def read(self, topic: str) -> list[Any]:
        """Every committed record of a topic, those of one partition in their order; no group is joined."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.bootstrap, "group.id": "unused", "log_level": "0"}
        consumer = Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
        try:
            numbers = self.admin.list_topics(topic, timeout=30).topics[topic].partitions
            found = []
            for number in sorted(numbers):
                place = TopicPartition(topic, number)
                first, end = consumer.get_watermark_offsets(place, timeout=30)
                place.offset = first
                consumer.assign([place])
                until = time.monotonic() + _LIMIT_SECONDS
                while first < end and consumer.position([place])[0].offset < end and time.monotonic() < until:
                    found += [one for one in consumer.consume(1000, 0.5) if one.error() is None]
            return found
        finally:
            consumer.close()

    def stop(self) -> None:
        """End it and remove its log."""
        self.process.kill()
        self.process.wait(_LIMIT_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _wait(self) -> None:
        until = time.monotonic() + _LIMIT_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    self.stop()
                    raise
                time.sleep(0.1)
            else:
                return
