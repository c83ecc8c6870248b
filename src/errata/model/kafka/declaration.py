"""Kafka as product and project files declare it: clusters, topics, and what their records hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf
from errata.model.file_values import Column, Identifier, Length, Line, Setting, SettingName, SourceType, YesNo

RECORD_COLUMNS: Mapping[str, str] = {
    "kafka_key": "binary",
    "kafka_topic": "string",
    "kafka_partition": "int",
    "kafka_offset": "long",
    "kafka_timestamp": "timestamptz",
    "kafka_headers": "string",
}
"""Columns that every record has beside those of its value, with their types; headers are JSON text."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """A Kafka cluster. Planning asks it through librdkafka, workers read it through Spark."""

    name: Annotated[str, NOT_A_KEY]
    bootstrap: Annotated[Line, Key("Brokers to start from: host:port, separated by commas.")]
    conf: Annotated[
        Mapping[SettingName, Setting],
        Key("Settings of the connection, by the names of librdkafka; secrets as ${NAME}."),
    ] = field(default_factory=dict, repr=False)
    spark_conf: Annotated[
        Mapping[SettingName, Setting],
        Key("Settings that Java's client needs under other names, such as ssl.keystore.location."),
    ] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """A topic that Errata sends to."""

    cluster: Annotated[Identifier, Key("A Kafka cluster of errata.yaml.")]
    topic: Annotated[Line, Key("A topic for corrections alone.")]

    @property
    def location(self) -> str:
        """The topic as manifests and screens name it."""
        return f"kafka://{self.cluster}/{self.topic}"


@dataclass(frozen=True, slots=True)
class RecordValue:
    """What the values of the records hold."""

    format: Annotated[str, OneOf("json", "text"), Key("json: one object per record; text: the column value.")] = "json"
    columns: Annotated[
        Mapping[Column, SourceType],
        AtLeast(1),
        Key("json: fields of the object and their types. A field that is not there is NULL."),
    ] = field(default_factory=dict)


def build_record_schema(value: RecordValue) -> dict[str, str]:
    """Columns of the records before any cast: fields of JSON are text."""
    names = value.columns if value.format == "json" else ("value",)
    return {**dict.fromkeys(names, "string"), **RECORD_COLUMNS}


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """Records of a topic, read by offsets that the plan seals."""

    cluster: Annotated[Identifier, Key("A cluster of errata.yaml.")]
    topic: Line
    value: RecordValue = field(default_factory=RecordValue)
    time: Annotated[
        str,
        OneOf("record"),
        Key("How times become offsets: by the times of the records. Rows are cut by their own event time."),
    ] = "record"
    lateness_seconds: Annotated[
        Length,
        Key("How far the time of a record may be from its event time.", path="lateness", default="0s"),
    ] = 0
    compacted: Annotated[YesNo, Key("Read a topic that is compacted, so that older values of a key are gone.")] = False
    transactions: Annotated[YesNo, Key("Producers use transactions, so that some offsets have no record.")] = False

    @property
    def location(self) -> str:
        """The topic as manifests and screens name it."""
        return f"kafka://{self.cluster}/{self.topic}"
