"""Requests to an API: within its rate, again where that helps, with a token that is fetched again when it is over."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import IO, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from errata.engines.http_request import Answer, send_request
from errata.engines.recordings.text_rows import build_decoder
from errata.errors import EngineError
from errata.model.recording.declaration import HttpSource
from errata.text.numbers import plural

MAX_BODY_BYTES = 64 * 1024 * 1024
KEPT = "nothing was recorded; pages that were read are kept, and the same command continues"
_LONGEST_WAIT = 600.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)


@dataclass
class ApiClient:
    """Asks one API; ``sleep`` waits."""

    name: str
    http: HttpSource
    sleep: Callable[[float], None]
    max_bytes: int = MAX_BODY_BYTES  # of a body that goes to a file
    _token: str | None = None
    _last: float = field(default=float("-inf"))

    def ask(self, url: str, save: Callable[[], IO[bytes]] | None = None) -> Answer:
        """The answer, after as many attempts as the source allows; with ``save`` its body goes to such a file."""
        for attempt in range(1, self.http.attempts + 1):
            self._wait_for_turn()
            problem, wait = "", min(0.5 * 2**attempt, 30.0)
            try:
                answer = self._send(url, save)
            except EngineError as error:
                problem = error.message
            else:
                if 200 <= answer.status < 300:
                    return answer
                problem = f"HTTP {answer.status}"
                if answer.status == 401 and self.http.token is not None:
                    self._token = None
                elif answer.status not in _PASSING:
                    moved = ", a redirect to elsewhere, which is not followed" if 300 <= answer.status < 400 else ""
                    raise self._build_error(f"{problem}{moved}")
                wait = _read_retry_after(answer, wait)
            if attempt < self.http.attempts:
                # part of the time by chance, so that several readers do not come back together
                self.sleep(wait * (1 + int.from_bytes(hashlib.sha256(f"{url}{attempt}".encode()).digest()[:2]) / 2**18))
        raise self._build_error(f"{problem}, after {plural(self.http.attempts, 'attempt')}")

    def _send(self, url: str, save: Callable[[], IO[bytes]] | None) -> Answer:
        headers, limit = self._build_headers(), self.http.timeout_seconds
        if save is None:
            return send_request("GET", url, None, headers, limit, max_body_bytes=MAX_BODY_BYTES)
        with save() as file:
            return send_request("GET", url, None, headers, limit, max_body_bytes=self.max_bytes, save=file.write)

    def _build_error(self, why: str) -> EngineError:
        return EngineError(
            f"source {self.name} could not be read: {why}",
            state=KEPT,
            hint="repeat the command",
        )

    def _wait_for_turn(self) -> None:
        left = self._last + 60 / self.http.per_minute - time.monotonic()
        if left > 0:
            self.sleep(left)
        self._last = time.monotonic()

    def _build_headers(self) -> dict[str, str]:
        headers = {"accept": "application/json"} | {name.lower(): text for name, text in self.http.headers.items()}
        if self.http.token is not None:
            self._token = self._token or self._fetch_token()
            headers["authorization"] = f"Bearer {self._token}"
        return headers

    def _fetch_token(self) -> str:
        token = self.http.token
        assert token is not None  # noqa: S101 - the caller looked
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        content = urlencode(dict(token.form)).encode()
        answer = send_request("POST", token.url, content, headers, self.http.timeout_seconds)
        found = find_field(decode_json(answer.body, "the token"), token.field_name) if answer.status == 200 else None
        if not isinstance(found, str) or not found:
            raise EngineError(f"the address of the token answered HTTP {answer.status} without a token")
        return found


def build_url(url: str, asked: dict[str, str]) -> str:
    """An address with these parameters, besides its own."""
    parts = urlsplit(url)
    own = [(name, text) for name, text in parse_qsl(parts.query, keep_blank_values=True) if name not in asked]
    return urlunsplit(parts._replace(query=urlencode([*own, *asked.items()])))


def decode_json(content: bytes, what: str) -> Any:
    """What an answer says; raises ``EngineError`` if it is not JSON."""
    try:
        return build_decoder().decode(content.decode().strip())
    except (ValueError, RecursionError):
        raise EngineError(f"{what} is not JSON", state=KEPT, hint="repeat the command") from None


def find_field(data: Any, path: str) -> Any:
    """A field of a field, by names with dots between them; None if one is missing."""
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _read_retry_after(answer: Answer, otherwise: float) -> float:
    """Seconds, or the time of day until then; anything else is not understood."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), _LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return otherwise
    left = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(left, 0.0), _LONGEST_WAIT)
