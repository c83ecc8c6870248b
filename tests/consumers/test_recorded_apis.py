"""`errata record` on a real HTTP server that throttles, pages and lies: every row once, or a reason on record."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

import errata
from errata.client import Client
from errata.errors import EngineError, ProjectFileError, StateRefused, UsageError

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: single-user
sources:
  api:
    format: json
    http: {url: "%s/orders?size=2", start: since, end: until, rows: data, id: id, total: total, timeout: 5s,
           headers: {x-key: "${API_KEY}"}, per_minute: 6000, %s}
"""
CURSOR = "paging: cursor, parameter: after, cursor: next"
SECRET = "k3y-of-the-test"


@dataclass
class Api:
    """Five orders in pages of two; ``lie`` changes an answer before it is sent."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    lie: Callable[[int, dict[str, Any]], Any] = lambda n, answer: answer

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        self.asked.append(path)
        query = parse_qs(urlsplit(path).query)
        n = int(query.get("after", query.get("page", ["1"]))[0])
        rows = [{"id": i, "amount": "AMOUNT"} for i in range(1, 6)][2 * n - 2 : 2 * n]
        told = self.lie(n, {"data": rows, "total": 5, "next": str(n + 1) if n < 3 else None})
        if isinstance(told, tuple):
            return told[0], told[1], b"no"
        return 200, {}, json.dumps(told).replace('"AMOUNT"', "1.10").encode()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """A server on loopback."""
    monkeypatch.setenv("API_KEY", SECRET)
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = state.answer(self.path)
            if self.headers["x-key"] != SECRET:
                status = 403
            self.send_response(status)
            for name, value in (headers | {"content-length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def open_project(tmp_path: Path, api: Api) -> Callable[..., Client]:
    """Opens a project that records the server."""

    def open_it(more: str = CURSOR) -> Client:
        (tmp_path / "errata.yaml").write_text(PROJECT % (api.url, more))
        return errata.open(str(tmp_path))

    return open_it


def record(client: Client) -> Any:
    return client.record("api", "2026-01-03", "2026-01-04")


@pytest.mark.parametrize("paging", [CURSOR, "paging: page, parameter: page"])
def test_every_row_is_recorded_with_its_digits_and_every_body_is_kept(
    open_project: Callable[..., Client], api: Api, tmp_path: Path, paging: str
):
    """The window is in every request; the secret is in none that is kept."""
    with open_project(paging) as client:
        view = record(client)
        (held,) = client.recordings().files
    assert (view.notes, held.status, held.rows) == ((), "accepted", 5)
    stored = tmp_path / "recordings" / held.place
    rows = pq.read_table(f"{stored}.rows.parquet").to_pylist()
    assert [(row["id"], row["amount"]) for row in rows] == [(str(n), "1.10") for n in range(1, 6)]
    assert all("since=2026-01-03T00%3A00%3A00Z&until=2026-01-04" in path for path in api.asked)
    with zipfile.ZipFile(stored.parent / "requests.zip") as kept:
        names = kept.namelist()
        told = [json.loads(kept.read(name)) for name in names if name.endswith(".json")]
        assert SECRET not in str([kept.read(name) for name in names])
    assert len(names) == 2 * len(api.asked)
    assert {one["status"] for one in told} == {200}


def test_a_server_that_throttles_is_asked_again_when_it_says(open_project: Callable[..., Client], api: Api):
    """Too many requests, then an error, then the page: the page counts once."""
    left = [(429, {"retry-after": "0"}), (503, {"retry-after": "0"})]
    api.lie = lambda n, answer: left.pop() if n == 2 and left else answer
    with open_project() as client:
        assert record(client).files[0].rows == 5
    assert len(api.asked) == 5


def test_a_time_of_day_says_when_to_ask_again(open_project: Callable[..., Client], api: Api):
    """Retry-After may be a date; one that is over means now, and one that is no date is left alone."""
    left = [(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})]
    api.lie = lambda n, answer: left.pop() if n == 2 and left else answer
    begun = time.monotonic()
    with open_project() as client:
        assert record(client).files[0].rows == 5
    assert time.monotonic() - begun < 30


def test_an_error_page_with_status_200_is_no_page(open_project: Callable[..., Client], api: Api, tmp_path: Path):
    """HTML in place of JSON is an error by the number of its page; it is not kept, so the same command asks again."""
    broken = [True]

    def lie(n: int, answer: dict[str, Any]) -> Any:
        return (200, {"content-type": "text/html"}) if n == 2 and broken else answer

    api.lie = lie
    with open_project() as client:
        with pytest.raises(EngineError, match="page 2 is not JSON") as failed:
            record(client)
        assert failed.value.hint == "repeat the command"
        assert client.recordings(every=True).files == ()
        broken.clear()
        assert record(client).files[0].rows == 5
    pages = [parse_qs(urlsplit(path).query).get("after", ["1"]) for path in api.asked]
    assert pages == [["1"], ["2"], ["2"], ["3"]]


def test_a_page_that_is_skipped_is_drift(open_project: Callable[..., Client], api: Api):
    """Fewer rows came than the server says that there are."""
    api.lie = lambda n, answer: answer | ({"next": "3"} if n == 1 else {})
    with open_project() as client:
        assert "total is 5, and 3 different rows came" in record(client).rejected[0].why


def test_the_same_window_again_is_one_accepted_recording(open_project: Callable[..., Client], api: Api):
    """With the same rows nothing is added; with other rows the new one is rejected by name, never taken silently."""
    with open_project() as client:
        (first,) = record(client).files
        assert record(client).files[0].already
        api.lie = lambda n, answer: answer | ({"data": answer["data"][:1], "total": 4} if n == 1 else {"total": 4})
        (other,) = record(client).rejected
        assert "is on record with other content" in other.why
        assert [one.file_id for one in client.recordings().files] == [first.file_id]


@pytest.mark.parametrize("status", [400, 403, 404])
def test_an_answer_that_will_not_change_is_an_error_at_once(open_project: Callable[..., Client], api: Api, status: int):
    """Nothing is recorded, and the server is not asked again."""
    api.lie = lambda _n, _answer: (status, {})
    with open_project() as client:
        with pytest.raises(EngineError, match=f"HTTP {status}"):
            record(client)
        assert client.recordings(every=True).files == ()
    assert len(api.asked) == 1


def test_a_redirect_to_another_host_is_refused(open_project: Callable[..., Client], api: Api):
    """The key in the headers is not for others."""
    api.lie = lambda _n, _answer: (302, {"location": "http://localhost:1/elsewhere"})
    with open_project() as client, pytest.raises(EngineError, match="a redirect to elsewhere, which is not followed"):
        record(client)


def test_pages_that_repeat_rows_are_rejected_with_the_reason(open_project: Callable[..., Client], api: Api):
    """Rows moved between pages while they were read; the bodies are kept, and drift: accept takes them all the same."""
    api.lie = lambda n, answer: answer | ({"data": [{"id": 2, "amount": 1}, {"id": 3, "amount": 1}]} if n == 2 else {})
    with open_project() as client:
        (refused,) = record(client).rejected
        assert "1 values of id are in several rows, such as 2" in refused.why
    with open_project(f"{CURSOR}, drift: accept") as client:
        view = record(client)
        assert (view.files[0].status, view.files[0].rows) == ("accepted", 5)
        assert view.notes[1] == "total is 5, and 4 different rows came"


def test_a_total_that_changes_is_drift(open_project: Callable[..., Client], api: Api):
    """Also if the rows that came are as many as the last page says."""
    api.lie = lambda n, answer: answer | {"total": 4 if n == 1 else 5}
    with open_project() as client:
        assert "total was 4, then 5" in record(client).rejected[0].why


def test_a_cursor_that_comes_again_ends_the_reading(open_project: Callable[..., Client], api: Api):
    """A server whose pages never end is an error, not an endless file."""
    api.lie = lambda _n, answer: answer | {"next": "2"}
    with open_project() as client, pytest.raises(EngineError, match="its pages never end"):
        record(client)


IDS = """\
sources:
  api:
    format: %s
    duplicates: correction
    http: {url: "%s/orders", headers: {x-key: "${API_KEY}"}, per_minute: 6000, %s}
"""


@pytest.fixture
def open_scan(tmp_path: Path, api: Api) -> Callable[..., Client]:
    """Opens a project that scans the server by ids, or as a whole."""

    def open_it(more: str, kind: str = "json") -> Client:
        head = PROJECT[: PROJECT.index("sources:")]
        (tmp_path / "errata.yaml").write_text(head + IDS % (kind, api.url, more))
        return errata.open(str(tmp_path))

    return open_it


def test_a_range_of_ids_is_scanned_after_the_last_id(open_scan: Callable[..., Client], api: Api):
    """Page by page until one is empty; ids outside the range are drift; ranges that overlap are refused."""

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        api.asked.append(path)
        query = parse_qs(urlsplit(path).query)
        after, least, most = (int(query.get(name, ["0"])[0]) for name in ("since_id", "min", "max"))
        rows = [{"id": n} for n in range(1, 9) if least <= n < most + stray and n > after][:2]
        return 200, {}, json.dumps({"data": rows}).encode()

    stray = 0
    api.answer = answer  # type: ignore[method-assign]
    keys = "window: ids, start: min, end: max, rows: data, paging: id, parameter: since_id, id: id"
    with open_scan(keys) as client:
        (done,) = client.record("api", "1", "6").files
        assert (done.status, done.rows, done.start) == ("accepted", 5, None)
        assert [parse_qs(urlsplit(path).query).get("since_id") for path in api.asked] == [None, ["2"], ["4"], ["5"]]
        with pytest.raises(StateRefused, match="rows in both would count twice"):
            client.record("api", "5", "8")
        stray = 1
        assert "1 rows have another id than 6 to 8" in client.record("api", "6", "8").rejected[0].why
        with pytest.raises(UsageError, match="expected two whole numbers"):
            client.record("api", "2026-01-03", "2026-01-04")
        with pytest.raises(UsageError, match="expected --from and --to"):
            client.record("api")


@pytest.mark.parametrize("packed", [False, True])
def test_an_export_is_recorded_as_the_file_that_it_is(open_scan: Callable[..., Client], api: Api, packed: bool):
    """No window, no pages; the newest export supersedes the one before, and an unchanged one adds nothing."""
    content = [b"id,amount\n1,1.10\n2,2\n"]

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        api.asked.append(path)
        return 200, {"etag": '"v1"'}, gzip.compress(content[0], mtime=0) if packed else content[0]

    api.answer = answer  # type: ignore[method-assign]
    with open_scan("window: none, paging: file", "csv") as client:
        (first,) = client.record("api").files
        assert (first.status, first.rows) == ("accepted", 2)
        assert client.record("api").files[0].already
        content[0] += b"3,3\n"
        (second,) = client.record("api", "2026-01-01", "2026-02-01").files
        assert (second.rows, second.supersedes, second.end) == (3, first.file_id, "2026-02-01T00:00:00Z")
        assert client.recordings().files[0].manifest_id == 'export "v1"'


def test_a_recording_killed_before_it_is_on_record_is_read_from_its_pages(
    open_project: Callable[..., Client], api: Api, tmp_path: Path
):
    """Killed after the last page: the same command asks for nothing, and every row counts once."""
    open_project().close()
    command = [sys.executable, "-m", "errata", "-C", str(tmp_path), "record", "api", "--from", "2026-01-03"]
    command += ["--to", "2026-01-04"]
    failing = {**os.environ, "ERRATA_FAILPOINTS": "record.after_fetch=kill"}
    killed = subprocess.run(command, env=failing, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    before = len(api.asked)
    with open_project() as client:
        assert record(client).files[0].rows == 5
        assert len(client.recordings(every=True).files) == 1
    assert len(api.asked) == before


def test_a_killed_recording_continues_at_its_page(open_project: Callable[..., Client], api: Api, tmp_path: Path):
    """Killed after the second page: the same command asks for the third only, and records every row once."""
    open_project().close()
    command = [sys.executable, "-m", "errata", "-C", str(tmp_path), "record", "api", "--from", "2026-01-03"]
    command += ["--to", "2026-01-04"]
    failing = {**os.environ, "ERRATA_FAILPOINTS": "record.after_page=kill@2"}
    killed = subprocess.run(command, env=failing, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    before = len(api.asked)
    with open_project() as client:
        assert record(client).files[0].rows == 5
        assert len(client.recordings().files) == 1
    assert [parse_qs(urlsplit(path).query)["after"] for path in api.asked[before:]] == [["3"]]


def test_a_packed_answer_that_grows_without_end_is_not_unpacked(
    open_project: Callable[..., Client], open_scan: Callable[..., Client], api: Api
):
    """As a page it is no JSON, and as an export it is rejected by its reason; nothing of it is read by a run."""
    bomb = gzip.compress(bytes(64 * 1024 * 1024), mtime=0)
    api.answer = lambda _path: (200, {"content-encoding": "gzip"}, bomb)  # type: ignore[method-assign]
    with open_project() as client:
        with pytest.raises(EngineError, match="page 1 is not JSON"):
            record(client)
        assert client.recordings(every=True).files == ()
    with open_scan("window: none, paging: file", "csv") as client:
        assert client.record("api").rejected[0].why == "its first line is not a header: it is longer than 16 MiB"


def test_parameters_of_the_address_are_all_sent(open_project: Callable[..., Client], api: Api):
    """Also one that is there twice; the window takes the place of one with its name."""
    api.url += "/v1?status=open&status=closed&since=never&x="
    with open_project() as client:
        record(client)
    query = parse_qs(urlsplit(api.asked[0]).query, keep_blank_values=True)
    assert query["status"] == ["open", "closed"]
    assert query["since"] == ["2026-01-03T00:00:00Z"]
    assert api.asked[0].count("since=") == 1


def test_credentials_in_an_address_are_refused(tmp_path: Path):
    """They would be in logs of proxies and servers; headers and tokens are for them."""
    (tmp_path / "errata.yaml").write_text(PROJECT % ("http://ana:secret-word@127.0.0.1:1", CURSOR))
    with pytest.raises(ProjectFileError) as refused:
        errata.open(str(tmp_path))
    assert "no user and password in the address" in str(refused.value)
    assert "secret-word" not in str(refused.value)
