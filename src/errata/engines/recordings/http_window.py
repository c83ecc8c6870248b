"""Read a window of an API page by page, so that it can be continued after a crash and shows when pages changed.

Every body is kept as it came, with its request, status and hash; both are written before the next page is asked for. A
page that is there is not asked for again. Rows are written as lines of JSON with the digits of the answer.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from errata.engines.http_request import Answer, send_request
from errata.engines.recordings.text_rows import build_decoder, write_json
from errata.errors import EngineError, UsageError
from errata.failpoints import failpoint
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.declaration import HttpSource, Source
from errata.ports.recordings import Fetched, WindowReader

MAX_BODY_BYTES = 64 * 1024 * 1024
_MAX_PAGES = 100_000
_LONGEST_WAIT = 600.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_SHOWN = 3
_EPOCH = (1980, 1, 1, 0, 0, 0)


class HttpWindows:
    """Reads windows of APIs; ``redact`` takes secrets out of what is kept of a request."""

    def __init__(self, redact: Callable[[str], str] = str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._redact = redact
        self._sleep = sleep

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """See the port."""
        if source.http is None:
            raise UsageError(f"source {source.name} has no address")
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        reader = _PageReader(source.name, source.http, window, place, self._redact, self._sleep)
        drift = _Drift(source.http)
        made = place / "rows.part"
        with made.open("w", encoding="utf-8", newline="\n") as file:
            for page in reader.iterate():
                drift.see_page(page)
                for row in page.rows:
                    drift.see_row(row)
                    file.write(f"{write_json(row)}\n")
        notes = drift.list_notes()
        kept = _zip_pages(place)
        mark = f"{reader.count} pages, requests {hashlib.sha256(kept.read_bytes()).hexdigest()}"
        flaw = (
            f"its pages changed while they were read: {notes[0]}" if notes and source.http.drift == "reject" else None
        )
        return Fetched(str(made), mark, notes, flaw, str(kept))


@dataclass(frozen=True, slots=True)
class _Page:
    """One answer: its rows, the next cursor, and what it says about the whole."""

    rows: list[Any]
    cursor: str | None
    total: str | None


@dataclass
class _PageReader:
    name: str
    http: HttpSource
    window: BusinessRange
    place: Path
    redact: Callable[[str], str]
    sleep: Callable[[float], None]
    count: int = 0
    _token: str | None = None
    _last: float = field(default=float("-inf"))

    def iterate(self) -> Iterator[_Page]:
        """Pages in order; those that are on disk are read from there."""
        cursor: str | None = None
        seen: set[str] = set()
        for n in range(1, _MAX_PAGES + 1):
            page = self._read(n, cursor)
            self.count = n
            yield page
            if self.http.paging == "none" or (self.http.paging == "page" and not page.rows):
                return
            if self.http.paging == "cursor":
                if not page.cursor:
                    return
                if page.cursor in seen:
                    raise EngineError(
                        f"source {self.name}: page {n} names a cursor that came before, so its pages never end",
                        state="nothing was recorded",
                    )
                seen.add(page.cursor)
                cursor = page.cursor
        raise EngineError(f"source {self.name} has more than {_MAX_PAGES:,} pages", state="nothing was recorded")

    def _read(self, n: int, cursor: str | None) -> _Page:
        body, kept = self.place / f"page-{n:06}.body", self.place / f"page-{n:06}.json"
        url = self._build_url(n, cursor)
        known = json.loads(kept.read_text("utf-8")) if kept.exists() else None
        if known is None or known["request"] != self._describe(url) or _hash(body) != known["sha256"]:
            answer = self._ask(url)
            _write_whole(body, answer.body)
            told = {"request": self._describe(url), "status": answer.status, "sha256": _hash(body)}
            _write_whole(kept, json.dumps(told, indent=1).encode())
            failpoint("record.after_page")
        return self._parse(n, body.read_bytes())

    def _describe(self, url: str) -> str:
        return f"GET {self.redact(url)}"

    def _build_url(self, n: int, cursor: str | None) -> str:
        parts = urlsplit(self.http.url)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        asked |= {self.http.start: self.window.start, self.http.end: self.window.end}
        if self.http.paging == "page":
            asked[str(self.http.parameter)] = str(n)
        elif cursor is not None:
            asked[str(self.http.parameter)] = cursor
        return urlunsplit(parts._replace(query=urlencode(asked)))

    def _ask(self, url: str) -> Answer:
        """The answer, after as many attempts as the source allows."""
        for attempt in range(1, self.http.attempts + 1):
            self._wait_for_turn()
            problem, wait = "", min(0.5 * 2**attempt, 30.0)
            try:
                answer = send_request(
                    "GET", url, None, self._build_headers(), self.http.timeout_seconds, max_body_bytes=MAX_BODY_BYTES
                )
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
        raise self._build_error(f"{problem}, after {self.http.attempts} attempts")

    def _build_error(self, why: str) -> EngineError:
        return EngineError(
            f"source {self.name} could not be read: {why}",
            state="nothing was recorded; pages that were read are kept, and the same command continues",
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
        found = _find_field(_decode(answer.body), token.field_name) if answer.status == 200 else None
        if not isinstance(found, str) or not found:
            raise EngineError(f"the address of the token answered HTTP {answer.status} without a token")
        return found

    def _parse(self, n: int, content: bytes) -> _Page:
        data = _decode(content)
        rows = data if self.http.rows is None else _find_field(data, self.http.rows)
        if not isinstance(rows, list):
            where = self.http.rows or "the answer"
            raise EngineError(
                f"source {self.name}: page {n} has no list of rows in {where}", state="nothing was recorded"
            )
        cursor = _find_field(data, self.http.cursor) if self.http.cursor else None
        total = _find_field(data, self.http.total) if self.http.total else None
        return _Page(rows, None if cursor in (None, "") else str(cursor), None if total is None else str(total))


class _Drift:
    """Notices rows that repeat or are missing, and totals that change."""

    def __init__(self, http: HttpSource) -> None:
        self._http = http
        self._ids: set[str] = set()
        self._repeated: dict[str, None] = {}
        self._totals: dict[str, None] = {}
        self._without = 0
        self.rows = 0

    def see_page(self, page: _Page) -> None:
        if page.total is not None:
            self._totals[page.total] = None

    def see_row(self, row: Any) -> None:
        self.rows += 1
        if self._http.id is None:
            return
        value = _find_field(row, self._http.id)
        if value is None:
            self._without += 1
        elif str(value) in self._ids:
            self._repeated[str(value)] = None
        else:
            self._ids.add(str(value))

    def list_notes(self) -> tuple[str, ...]:
        found = []
        if self._repeated:
            shown = ", ".join(list(self._repeated)[:_SHOWN])
            found.append(f"{len(self._repeated)} values of {self._http.id} are in several rows, such as {shown}")
        if self._without:
            found.append(f"{self._without} rows have no {self._http.id}")
        if len(self._totals) > 1:
            found.append(f"{self._http.total} was {', then '.join(list(self._totals)[:_SHOWN])}")
        known = len(self._ids) if self._http.id else self.rows
        last = next(reversed(self._totals), None)
        if last is not None and last != str(known):
            found.append(f"{self._http.total} is {last}, and {known} different rows came")
        return tuple(found)


def _decode(content: bytes) -> Any:
    try:
        return build_decoder().decode(content.decode().strip())
    except (ValueError, RecursionError):
        raise EngineError("an answer is not JSON", state="nothing was recorded") from None


def _find_field(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _read_retry_after(answer: Answer, otherwise: float) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), _LONGEST_WAIT) if text.isdigit() else otherwise


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _write_whole(path: Path, content: bytes) -> None:
    part = path.with_suffix(f"{path.suffix}.part")
    part.write_bytes(content)
    part.replace(path)


def _zip_pages(place: Path) -> Path:
    """Every page and its request in one file; the same pages give the same bytes."""
    made = place / "requests.zip"
    with zipfile.ZipFile(made, "w") as archive:
        for path in sorted((*place.glob("page-*.body"), *place.glob("page-*.json"))):
            info = zipfile.ZipInfo(path.name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())
    return made


_conforms: type[WindowReader] = HttpWindows
