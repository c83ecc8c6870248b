"""Where lineage events go, as errata.yaml declares it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from errata.model.file_keys import Key
from errata.model.file_values import Credential, Identifier, Length, Line
from errata.model.kafka.declaration import TopicPlace

TRANSPORTS = ("file", "http", "kafka")


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector of OpenLineage events, such as Marquez."""

    url: Annotated[Credential, Key("Address of the collector, without the path of its endpoint.")] = field(repr=False)
    endpoint: Annotated[Line, Key("Path that takes events.")] = "api/v1/lineage"
    api_key: Annotated[Credential | None, Key("Sent as a bearer token; as ${NAME}.")] = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where events are posted."""
        return f"{self.url.rstrip('/')}/{self.endpoint.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """OpenLineage events of every run, to one of file, http and kafka."""

    file: Annotated[Line | None, Key("File to which each event is appended as a line of JSON.")] = None
    """Absolute once loaded."""
    http: Collector | None = None
    kafka: Annotated[TopicPlace | None, Key("A topic of a Kafka cluster of errata.yaml.")] = None
    namespace: Annotated[Line | None, Key("Namespace of the jobs (default: the name of the project).")] = None
    datasets: Annotated[
        Mapping[Identifier, Line],
        Key("Namespace of the tables of a catalog, if other tools name it otherwise (default: the catalog's name)."),
    ] = field(default_factory=dict)
    timeout_seconds: Annotated[Length, Key("How long one event may take.", path="timeout", default="5s")] = 5

    @property
    def transport(self) -> str:
        """How events go there."""
        return next(kind for kind in TRANSPORTS if getattr(self, kind))
