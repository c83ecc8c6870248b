"""Send lineage events to a file, a collector or a topic, each confirmed before the next.

The events come from openlineage-python, its transports do not: that for Kafka logs a record that was not delivered and
continues, that for files neither locks nor waits for the disk, and that for HTTP has no limit on the whole time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from errata.engines.channels.message_file import append_lines
from errata.engines.http_request import send_request
from errata.engines.lineage.openlineage_events import choose_record_key, require_package, write_event
from errata.errors import EngineError, SetupError
from errata.model.kafka.outgoing import OutgoingRecord
from errata.model.lineage.declaration import Collector, LineageSettings
from errata.model.lineage.event import LineageEvent
from errata.ports.lineage import REFUSED, LineageSender
from errata.ports.outgoing_rows import TopicWriter

_NEVER = frozenset({400, 405, 413, 415, 422})
"""Answers that say that the event itself is wrong."""
_STATE = "the event stays owed"


@dataclass(frozen=True, slots=True)
class OpenLineageSender:
    """Sends the events of a project."""

    settings: LineageSettings | None
    namespace: str
    topics: TopicWriter
    redact: Callable[[str], str] = str

    def check(self) -> str:
        """See the port."""
        settings = self._require_settings()
        require_package()
        if settings.kafka is not None:
            self.topics.check(settings.kafka)
            return f"events go to {settings.kafka.location}"
        if settings.file is not None:
            parent = Path(settings.file).parent
            if parent.exists() and not parent.is_dir():
                raise EngineError(f"lineage.file: {parent} is not a directory")
            return f"events go to {settings.file}"
        assert settings.http is not None  # noqa: S101 - one of the three is there
        # any answer will do: collectors have no common way to ask whether they are well
        status = _request("GET", settings.http, settings.http.url, None, settings.timeout_seconds)
        return f"the collector at {_find_host(settings.http)} answers (HTTP {status})"

    def send(self, events: Sequence[LineageEvent]) -> None:
        """See the port."""
        settings, namespace = self._require_settings(), self._choose_namespace()
        documents = [write_event(event, namespace, self.redact) for event in events]
        if settings.file is not None:
            append_lines(settings.file, [_encode(document) + b"\n" for document in documents])
        elif settings.kafka is not None:
            keys = [choose_record_key(event, namespace) for event in events]
            records = [
                OutgoingRecord(key, _encode(document).decode(), {})
                for key, document in zip(keys, documents, strict=True)
            ]
            self.topics.send(settings.kafka, records)
        else:
            assert settings.http is not None  # noqa: S101 - one of the three is there
            for document in documents:
                _post(settings.http, document, settings.timeout_seconds)

    def _choose_namespace(self) -> str:
        return self._require_settings().namespace or self.namespace

    def _require_settings(self) -> LineageSettings:
        if self.settings is None:
            raise SetupError("errata.yaml does not say where lineage goes", hint="add lineage to errata.yaml")
        return self.settings


def _post(collector: Collector, document: Any, timeout_seconds: float) -> None:
    status = _request("POST", collector, collector.address, _encode(document), timeout_seconds)
    if 200 <= status < 300:
        return
    # the body of the answer may quote the event or the key
    error = EngineError(f"the collector at {_find_host(collector)} answered HTTP {status}", state=_STATE)
    error.fields[REFUSED] = status in _NEVER
    raise error


def _request(method: str, collector: Collector, url: str, content: bytes | None, timeout_seconds: float) -> int:
    headers = _write_headers(collector)
    try:
        return send_request(method, url, content, headers, timeout_seconds, reads_body=False).status
    except EngineError as error:
        raise EngineError(f"the collector at {_find_host(collector)}: {error.message}", state=_STATE) from None


def _write_headers(collector: Collector) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": "errata"}
    return headers | ({"authorization": f"Bearer {collector.api_key}"} if collector.api_key else {})


def _find_host(collector: Collector) -> str:
    """Of an address everything but the host may be a secret."""
    try:
        return urlsplit(collector.url).hostname or "its address"
    except ValueError:
        return "its address"


def _encode(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


_conforms: type[LineageSender] = OpenLineageSender
