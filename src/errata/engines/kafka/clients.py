"""Connections to the project's Kafka clusters, for every client of librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from errata.engines.kafka.settings import build_client_settings
from errata.errors import MissingDriver, SetupError
from errata.model.kafka.declaration import KafkaCluster

_Client = TypeVar("_Client")


class KafkaClients:
    """Opens clients of clusters by their names in errata.yaml."""

    def __init__(
        self, clusters: Mapping[str, KafkaCluster], redact: Callable[[str], str], timeout_seconds: float
    ) -> None:
        self._clusters = clusters
        self._redact = redact
        self._timeout = timeout_seconds

    def _connect(self, cluster: str, build: Callable[[dict[str, Any]], _Client]) -> _Client:
        """The client that ``build`` makes of the cluster's settings; it connects when it is first asked."""
        if cluster not in self._clusters:
            raise SetupError(f"errata.yaml has no Kafka cluster {cluster}", hint="add it under kafka")
        try:
            from confluent_kafka import KafkaException
        except ImportError as error:
            raise MissingDriver(
                "Kafka needs the package confluent-kafka; found none", hint="pip install 'errata[kafka]'"
            ) from error
        try:
            return build({**build_client_settings(self._clusters[cluster]), "log_level": 0})
        except KafkaException as error:
            said = self._redact(error.args[0].str())
            raise SetupError(f"kafka.{cluster} in errata.yaml was refused by librdkafka: {said}") from error
