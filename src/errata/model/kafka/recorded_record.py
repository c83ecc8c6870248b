"""Records of a topic as recordings keep them: the columns of a file, and a record as a row. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RECORDED_COLUMNS: Mapping[str, str] = {
    "key": "string",
    "key_base64": "string",
    "value": "string",
    "value_base64": "string",
    "headers": "string",
    "topic": "string",
    "topic_id": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamptz",
}
"""Columns of a recorded topic. Key and value are text; bytes that are no UTF-8 are in the column beside, as base64."""


@dataclass(frozen=True, slots=True)
class RecordedRecord:
    """One record as it came from the broker."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int
    offset: int
    timestamp_ms: int | None

    def to_row(self, topic: str, topic_id: str) -> dict[str, object]:
        """The row of this record; its time is in milliseconds.

        >>> row = RecordedRecord(b"a", b"\\xff", [("h", b"1")], 0, 7, 1000).to_row("t", "id")
        >>> row["key"], row["value"], row["value_base64"], row["headers"]
        ('a', None, '/w==', '[{"key":"h","value":"1"}]')
        """
        key, value = split_text(self.key), split_text(self.value)
        texts = (*key, *value, describe_headers(self.headers), topic, topic_id)
        return dict(zip(RECORDED_COLUMNS, (*texts, self.partition, self.offset, self.timestamp_ms), strict=True))


def split_text(content: bytes | None) -> tuple[str | None, str | None]:
    """Content as text, or as base64 if it is no text."""
    if content is None:
        return None, None
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(content).decode()


def describe_headers(headers: Sequence[tuple[str, bytes | None]]) -> str | None:
    """Headers as JSON text, as a run that reads the topic sees them; None without headers."""
    if not headers:
        return None
    told = [{"key": name} if value is None else {"key": name, "value": _to_text(value)} for name, value in headers]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _to_text(value: bytes) -> str:
    text, encoded = split_text(value)
    return text if encoded is None and text is not None else f"0x{value.hex().upper()}"
