"""Read a window of an API page by page, so that it can be continued after a crash and shows when pages changed.

Every body is kept as it came, with its request, status and hash; both are written before the next page is asked for. A
page that is there is not asked for again. Rows are written as lines of JSON with the digits of the answer.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errata.engines.recordings.api_client import KEPT, ApiClient, build_url, decode_json, find_field
from errata.engines.recordings.text_rows import write_json
from errata.errors import EngineError, UsageError
from errata.failpoints import failpoint
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.declaration import HttpSource, Source
from errata.model.recording.id_range import IdRange
from errata.ports.recordings import Fetched, ScanReader, WindowReader

_MAX_PAGES = 100_000
_SHOWN = 3
_MAX_MARK = 200
_EPOCH = (1980, 1, 1, 0, 0, 0)


class HttpWindows:
    """Reads windows of APIs; ``redact`` takes secrets out of what is kept of a request."""

    def __init__(self, redact: Callable[[str], str] = str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._redact = redact
        self._sleep = sleep

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """See the port."""
        return self._read(source, (window.start, window.end), None, Path(directory))

    def scan(self, source: Source, ids: IdRange | None, directory: str) -> Fetched:
        """See the port."""
        return self._read(source, (str(ids.start), str(ids.end)) if ids else None, ids, Path(directory))

    def _read(self, source: Source, ends: tuple[str, str] | None, ids: IdRange | None, place: Path) -> Fetched:
        http = source.http
        if http is None:
            raise UsageError(f"source {source.name} has no address")
        place.mkdir(parents=True, exist_ok=True)
        client = ApiClient(source.name, http, self._sleep, source.max_bytes)
        asked = dict(zip((str(http.start), str(http.end)), ends, strict=True)) if ends else {}
        if http.paging == "file":
            return _download(client, build_url(http.url, asked), place)
        reader, drift = _PageReader(client, asked, place, self._redact), _Drift(http, ids)
        made = place / "rows.part"
        with made.open("w", encoding="utf-8", newline="\n") as file:
            for page in reader.iterate():
                drift.see_page(page)
                for row in page.rows:
                    drift.see_row(row)
                    file.write(f"{write_json(row)}\n")
        notes = drift.list_notes()
        kept = _zip_pages(place)
        with kept.open("rb") as archive:
            mark = f"{reader.count} pages, requests {hashlib.file_digest(archive, 'sha256').hexdigest()}"
        flaw = f"its pages changed while they were read: {notes[0]}" if notes and http.drift == "reject" else None
        return Fetched(str(made), mark, notes, flaw, str(kept))


def _download(client: ApiClient, url: str, place: Path) -> Fetched:
    """The file that the answer is, as it came; a process that dies begins again."""
    made = place / "export.part"
    answer = client.ask(url, lambda: made.open("wb"))
    failpoint("record.after_page")
    told = [answer.headers[name] for name in ("etag", "last-modified") if name in answer.headers]
    return Fetched(str(made), f"export {' '.join(told)}".rstrip()[:_MAX_MARK])


@dataclass(frozen=True, slots=True)
class _Page:
    """One answer: its rows, the next cursor, and what it says about the whole."""

    rows: list[Any]
    cursor: str | None
    total: str | None


@dataclass
class _PageReader:
    client: ApiClient
    asked: Mapping[str, str]  # parameters of every request
    place: Path
    redact: Callable[[str], str]
    count: int = 0

    @property
    def http(self) -> HttpSource:
        return self.client.http

    @property
    def name(self) -> str:
        return self.client.name

    def iterate(self) -> Iterator[_Page]:
        """Pages in order; those that are on disk are read from there."""
        cursor: str | None = None
        seen: set[str] = set()
        for n in range(1, _MAX_PAGES + 1):
            page = self._read(n, cursor)
            self.count = n
            yield page
            if self.http.paging == "none" or (self.http.paging in ("page", "id") and not page.rows):
                return
            if self.http.paging in ("cursor", "id"):
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
            answer = self.client.ask(url)
            # parsed before it is kept: an error page that came with a 200 must not be there when this is repeated
            page = self._parse(n, answer.body)
            _write_whole(body, answer.body)
            told = {"request": self._describe(url), "status": answer.status, "sha256": _hash(body)}
            _write_whole(kept, json.dumps(told, indent=1).encode())
            failpoint("record.after_page")
            return page
        return self._parse(n, body.read_bytes())

    def _describe(self, url: str) -> str:
        return f"GET {self.redact(url)}"

    def _build_url(self, n: int, cursor: str | None) -> str:
        asked = dict(self.asked)
        if self.http.paging == "page":
            asked[str(self.http.parameter)] = str(n)
        elif cursor is not None:
            asked[str(self.http.parameter)] = cursor
        return build_url(self.http.url, asked)

    def _parse(self, n: int, content: bytes) -> _Page:
        data = decode_json(content, f"source {self.name}: page {n}")
        rows = data if self.http.rows is None else find_field(data, self.http.rows)
        if not isinstance(rows, list):
            where = self.http.rows or "the answer"
            raise EngineError(
                f"source {self.name}: page {n} has no list of rows in {where}",
                state=KEPT,
                hint="repeat the command, or correct rows under http",
            )
        cursor = find_field(data, self.http.cursor) if self.http.cursor else None
        if self.http.paging == "id" and rows:
            cursor = find_field(rows[-1], str(self.http.id))
        total = find_field(data, self.http.total) if self.http.total else None
        return _Page(rows, None if cursor in (None, "") else str(cursor), None if total is None else str(total))


class _Drift:
    """Notices rows that repeat or are missing, and totals that change."""

    def __init__(self, http: HttpSource, asked: IdRange | None = None) -> None:
        self._http = http
        self._asked = asked
        self._outside = 0
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
        value = find_field(row, self._http.id)
        if self._asked is not None and value is not None and not self._asked.contains(str(value)):
            self._outside += 1
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
        if self._outside and self._asked:
            found.append(f"{self._outside} rows have another {self._http.id} than {self._asked.text}")
        if len(self._totals) > 1:
            found.append(f"{self._http.total} was {', then '.join(list(self._totals)[:_SHOWN])}")
        known = len(self._ids) if self._http.id else self.rows
        last = next(reversed(self._totals), None)
        if last is not None and last != str(known):
            found.append(f"{self._http.total} is {last}, and {known} different rows came")
        return tuple(found)


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
_scans: type[ScanReader] = HttpWindows
