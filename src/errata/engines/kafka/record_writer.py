"""Send records to topics: one idempotent producer for each call, and every record confirmed before it returns."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from errata.engines.kafka.clients import KafkaClients
from errata.errors import EngineError
from errata.model.kafka.declaration import KafkaCluster, TopicPlace
from errata.model.kafka.outgoing import OutgoingRecord
from errata.ports.outgoing_rows import TopicWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Producer

_SECONDS = 60.0
"""How long a record may take until it is confirmed, and a full queue until it moves."""
_QUEUED = 5_000
_STATE = "records that were sent before stay in the topic; they are sent again with the same keys"


class KafkaRecordWriter(KafkaClients):
    """Sends records to topics of the project's clusters."""

    def __init__(
        self,
        clusters: Mapping[str, KafkaCluster],
        redact: Callable[[str], str] = str,
        timeout_seconds: float = _SECONDS,
    ) -> None:
        super().__init__(clusters, redact, timeout_seconds)

    def check(self, place: TopicPlace) -> None:
        """See the port."""
        self._require_topic(self._open(place), place)

    def send(self, place: TopicPlace, records: Iterable[OutgoingRecord]) -> int:
        """See the port."""
        producer = self._open(place)
        self._require_topic(producer, place)
        refused: list[Any] = []
        count = 0

        def note(error: Any, _message: Any) -> None:
            if error is not None:
                refused.append(error)

        try:
            for record in records:
                self._wait_for_room(producer, place, refused)
                headers: list[tuple[str, str | bytes | None]] = [
                    (name, text.encode()) for name, text in record.headers.items()
                ]
                producer.produce(place.topic, record.value.encode(), record.key.encode(), on_delivery=note,
                                 headers=headers)  # fmt: skip
                count += 1
                producer.poll(0)
            left = producer.flush(self._timeout + 5)
        finally:
            producer.purge()
        if left or refused:
            raise self._build_error(place, refused[0] if refused else None)
        return count

    def _wait_for_room(self, producer: Producer, place: TopicPlace, refused: list[Any]) -> None:
        until = time.monotonic() + self._timeout
        while len(producer) >= _QUEUED and not refused:
            producer.poll(0.1)
            if time.monotonic() > until:
                raise self._build_error(place, None)
        if refused:
            raise self._build_error(place, refused[0])

    def _open(self, place: TopicPlace) -> Producer:
        def build(settings: dict[str, Any]) -> Producer:
            from confluent_kafka import Producer

            sure = {"enable.idempotence": True, "acks": "all", "delivery.timeout.ms": int(self._timeout * 1000)}
            return Producer({**settings, **sure, "linger.ms": 20, "compression.type": "lz4"})

        return self._connect(place.cluster, build)

    def _require_topic(self, producer: Producer, place: TopicPlace) -> None:
        """Raise if there is no such topic; a producer would wait for it until its time is over."""
        from confluent_kafka import KafkaException

        try:
            known = producer.list_topics(place.topic, timeout=self._timeout).topics.get(place.topic)
        except KafkaException as error:
            why = self._redact(error.args[0].str())
            raise EngineError(
                f"{place.location} does not answer: {why}", state="nothing was sent", nothing_sent=True
            ) from error
        if known is None or known.error is not None:
            raise EngineError(
                f"{place.cluster} has no topic {place.topic}",
                state="nothing was sent",
                hint="create the topic; Errata creates none",
                nothing_sent=True,
            )

    def _build_error(self, place: TopicPlace, error: Any) -> EngineError:
        why = self._redact(error.str()) if error is not None else f"no answer in {self._timeout:.0f} s"
        return EngineError(f"{place.location} did not confirm every record: {why}", state=_STATE)


_conforms: type[TopicWriter] = KafkaRecordWriter
