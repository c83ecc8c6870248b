"""Ask a Kafka cluster what its topics are, and which offsets a time means. Joins no group, commits no offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from errata.engines.kafka.clients import KafkaClients
from errata.engines.retry import retry
from errata.errors import EngineError, ErrataError, NotFound
from errata.model.kafka.declaration import KafkaCluster, KafkaTopic, build_record_schema
from errata.model.kafka.topic_range import (
    ASSUMED_RECORD_BYTES,
    BROKER,
    LogState,
    OffsetRange,
    TopicPin,
    TopicState,
    find_changes,
    fingerprint_ranges,
    seal_ranges,
)
from errata.model.near_miss import NearMiss
from errata.model.partition import EPOCH, WHOLE, Grain, end_of, start_of
from errata.model.product import Input
from errata.ports.tables import InputReader, InputState, PartitionSize

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_SECONDS = 20.0


class KafkaTopics(KafkaClients):
    """Topics of the project's clusters."""

    def __init__(
        self,
        clusters: Mapping[str, KafkaCluster],
        redact: Callable[[str], str] = str,
        timeout_seconds: float = _SECONDS,
    ) -> None:
        super().__init__(clusters, redact, timeout_seconds)
        self._open = cache(self._build_admin)

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """Offsets of each partition, found by the times of records and widened by the lateness."""
        assert source.kafka is not None  # noqa: S101 - only such inputs come here
        topic = source.kafka
        state = self._require(source, topic)
        if source.partition is None:
            return _build_whole(source, topic, state)
        late, bounds = timedelta(seconds=topic.lateness_seconds), {}
        for name in partitions:
            start, end = start_of(grain, name), end_of(grain, name)
            bounds[name] = (_to_ms(start - late), _to_ms(end + late), _to_ms(start), _to_ms(end))
        found = self._find_offsets(topic, state, {one for each in bounds.values() for one in each})
        offsets: dict[str, tuple[OffsetRange, ...]] = {}
        sizes: dict[str, PartitionSize] = {}
        near_only = set()
        for name, (first, last, begin, until) in bounds.items():
            ranges = seal_ranges(state, found[first], found[last])
            if any(one.size for one in ranges):
                offsets[name] = ranges
                rows = _count_between(state, found[begin], found[until])
                near_only |= set() if rows else {name}
                mark = fingerprint_ranges(state.topic_id, ranges)
                sizes[name] = PartitionSize(max(1, rows), max(1, rows) * ASSUMED_RECORD_BYTES, 0, mark)
        return InputState(
            name=source.name,
            kind="kafka",
            location=topic.location,
            column_type=source.columns.get(source.partition or ""),
            partitions=sizes,
            newest_ms=max((each[3] for each in bounds.values()), default=None),
            rows_known=False,
            note=_describe_note(state),
            schemas=(build_record_schema(topic.value),),
            topic=state,
            offsets=offsets,
            near_only=frozenset(near_only),
        )

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """None: a topic has no files; raises ``NotFound`` if there is no such topic."""
        assert source.kafka is not None  # noqa: S101 - only such inputs come here
        self._require(source, source.kafka)
        return None

    def describe_cluster(self, name: str) -> str:
        """A cluster in words; raises ``EngineError`` if it does not answer."""
        told = self._await(name, self._open(name).describe_cluster(request_timeout=self._timeout))
        brokers = "1 broker" if len(told.nodes) == 1 else f"{len(told.nodes)} brokers"
        return f"{brokers}, id {told.cluster_id}"

    def find_silent(self, clusters: Iterable[str]) -> dict[str, str]:
        """Those of these clusters that do not answer, in words; all are asked at once."""
        asked = {}
        for name in clusters:
            with suppress(ErrataError):  # a driver, a setting or a variable is missing
                asked[name] = self._open(name).describe_cluster(request_timeout=self._timeout)
        silent = {}
        for name, future in asked.items():
            try:
                self._await(name, future)
            except EngineError as error:
                if error.fields.get("silent"):
                    silent[name] = error.message
        return silent

    def resolve_window(
        self, topic: KafkaTopic, first_ms: int, last_ms: int
    ) -> tuple[TopicState, tuple[OffsetRange, ...]] | None:
        """The offsets between two times, as a plan would seal them; None if there is no such topic."""
        state = self.describe(topic)
        if state is None:
            return None
        found = self._find_offsets(topic, state, (first_ms, last_ms))
        return state, seal_ranges(state, found[first_ms], found[last_ms])

    def _require(self, source: Input, topic: KafkaTopic) -> TopicState:
        state = self.describe(topic)
        if state is None:
            raise NotFound(
                f"input {source.name}: {topic.cluster} has no topic {topic.topic}",
                hint=f"look at inputs.{source.name}.kafka.topic in the product file, and at the topics of the cluster",
            )
        return state

    def find_changes(self, pin: TopicPin, ranges: Sequence[OffsetRange]) -> tuple[str, ...]:
        """Why sealed offsets cannot be read any more; empty if they can."""
        return find_changes(pin, ranges, self.describe(pin.declared))

    def describe(self, topic: KafkaTopic) -> TopicState | None:
        """The topic as it is now; None if there is none."""
        return retry(lambda: self._describe(topic), _may_pass)

    def _describe(self, topic: KafkaTopic) -> TopicState | None:
        from confluent_kafka import IsolationLevel, TopicCollection
        from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]

        admin, resource = self._open(topic.cluster), ConfigResource(ResourceType.TOPIC, topic.topic)
        described = admin.describe_topics(TopicCollection([topic.topic]), request_timeout=self._timeout)[topic.topic]
        configs = admin.describe_configs([resource], request_timeout=self._timeout)[resource]
        told = self._await(topic.cluster, described, missing_ok=True)
        if told is None:
            return None
        settings = self._await(topic.cluster, configs)
        numbers = sorted(one.id for one in told.partitions)
        earliest = self._list(admin, topic, numbers, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = self._list(admin, topic, numbers, latest, isolation_level=IsolationLevel.READ_COMMITTED)
        firsts = self._list(admin, topic, numbers, OffsetSpec.for_timestamp(0))
        logs = tuple(
            LogState(
                number,
                earliest[number].offset,
                ends[number].offset,
                firsts[number].timestamp if firsts[number].offset >= 0 else None,
            )
            for number in numbers
        )
        return TopicState(
            topic_id=str(told.topic_id),
            clock=settings["message.timestamp.type"].value,
            cleanup=settings["cleanup.policy"].value,
            retention_ms=int(settings["retention.ms"].value),
            retention_bytes=int(settings["retention.bytes"].value),
            logs=logs,
        )

    def _find_offsets(self, topic: KafkaTopic, state: TopicState, instants: Iterable[int]) -> dict[int, dict[int, int]]:
        """First offset at or after each instant, by topic partition; -1 if there is no such record."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        admin, numbers = self._open(topic.cluster), [log.partition for log in state.logs]
        asked = {
            instant: admin.list_offsets(
                {TopicPartition(topic.topic, number): OffsetSpec.for_timestamp(max(0, instant)) for number in numbers},
                request_timeout=self._timeout,
            )
            for instant in instants
        }
        return {
            instant: {one.partition: self._await(topic.cluster, future).offset for one, future in futures.items()}
            for instant, futures in asked.items()
        }

    def _list(
        self, admin: AdminClient, topic: KafkaTopic, numbers: Sequence[int], spec: Any, **options: Any
    ) -> dict[int, Any]:
        from confluent_kafka import TopicPartition

        asked = {TopicPartition(topic.topic, number): spec for number in numbers}
        futures = admin.list_offsets(asked, request_timeout=self._timeout, **options)
        return {one.partition: self._await(topic.cluster, future) for one, future in futures.items()}

    def _await(self, cluster: str, future: Any, *, missing_ok: bool = False) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return future.result(2 * self._timeout)
        except KafkaException as error:
            reason = error.args[0]
            if missing_ok and reason.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            is_silent = reason.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)  # noqa: SLF001 - public names
            found = f" in {self._timeout:.0f} s" if is_silent else f": {self._redact(reason.str())}"
            raise EngineError(
                f"Kafka cluster {cluster} did not answer{found}",
                hint="errata doctor looks at every cluster; kafka in errata.yaml has their settings",
                state="nothing was changed",
                silent=is_silent,
                may_pass=reason.retriable() or reason.code() == KafkaError.NOT_LEADER_FOR_PARTITION,
            ) from error

    def _build_admin(self, cluster: str) -> AdminClient:
        def build(settings: dict[str, Any]) -> AdminClient:
            from confluent_kafka.admin import AdminClient

            return AdminClient(settings)

        return self._connect(cluster, build)


def _build_whole(source: Input, topic: KafkaTopic, state: TopicState) -> InputState:
    """Every record that the topic has now, as a change log is read."""
    ranges = tuple(OffsetRange(log.partition, log.earliest, log.end) for log in state.logs)
    rows = sum(one.size for one in ranges)
    return InputState(
        name=source.name,
        kind="kafka",
        location=topic.location,
        column_type=None,
        partitions={},
        whole=PartitionSize(rows, rows * ASSUMED_RECORD_BYTES, 0, fingerprint_ranges(state.topic_id, ranges)),
        rows_known=False,
        note="every record is read",
        topic=state,
        offsets={WHOLE: ranges},
    )


def _may_pass(error: BaseException) -> bool:
    """Whether a broker may answer soon, such as one that has just become the leader of a new topic."""
    return isinstance(error, EngineError) and bool(error.fields.get("may_pass"))


def _describe_note(state: TopicState) -> str:
    rows = "rows are estimated by the times of records"
    if state.clock == BROKER:
        return rows
    return f"{rows}; producers set these times, so every chunk reads to the end of the topic"


def _count_between(state: TopicState, starts: Mapping[int, int], ends: Mapping[int, int]) -> int:
    count = 0
    for log in state.logs:
        first, last = starts[log.partition], ends[log.partition]
        if first >= 0:
            count += max(0, (last if last >= 0 else log.end) - first)
    return count


def _to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


_conforms: type[InputReader] = KafkaTopics
