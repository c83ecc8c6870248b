"""HTTP requests to consumers: what a request carries, and the value in its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from errata.engines.http_request import send_request
from errata.errors import EngineError
from errata.model.consumer.declaration import HttpCall


def call_address(
    call: HttpCall, url: str, partitions: Sequence[str], key: str, timeout_seconds: float, *, reads_body: bool
) -> bytes:
    """Send one request and return the body of its answer, if it is read; anything but success raises ``EngineError``.

    The partitions are sent as JSON, except with GET. The key is the same for every repetition of the same work.
    """
    headers = {"accept": "application/json", "idempotency-key": key}
    content = None
    if call.method != "GET":
        headers["content-type"] = "application/json"
        content = json.dumps({"partitions": list(partitions)}).encode()
    headers |= {name.lower(): value for name, value in call.headers.items()}
    answer = send_request(call.method, url, content, headers, timeout_seconds, reads_body=reads_body)
    if 300 <= answer.status < 400:
        raise EngineError(f"the address answered HTTP {answer.status}, a redirect that is not followed")
    if not 200 <= answer.status < 300:
        raise EngineError(f"the address answered HTTP {answer.status}")
    return answer.body


def read_field(body: bytes, field: str | None) -> str | None:
    """The value in an answer: the text of the whole answer, or what a dotted key of its JSON has; None is null."""
    if field is None:
        return body.decode("utf-8", "replace").strip()
    try:
        found = json.loads(body, parse_float=str, parse_int=str)
        for name in field.split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, KeyError, TypeError, IndexError):
        raise EngineError(f"the answer has no field {field}") from None
    if isinstance(found, (dict, list)):
        raise EngineError(f"the field {field} of the answer is not one value")
    return None if found is None else str(found)
