"""Recordings without erased subjects: their rows are gone from every file, and nothing else is."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.client import Client
from errata.commands.sources.redaction import Redaction, redact_recordings
from errata.model.audit import Actor
from errata.model.recording.subject_names import SubjectNames
from errata.wiring import build_client, open_workspace
from errata.workspace import Workspace

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: single-user
sources:
  orders: {format: json, duplicates: correction}
  rates: {format: csv, delimiter: ";"}
  lines: {format: parquet}
"""
SUBJECT = "ana-4711"
JSON = b'{"id": 1, "who": "ana-4711"}\n\n{"id": 2, "who": "bo"}\nana-4711 oops\n{"id": 3, "who": "cy", "x": 1.10}\n'
ANA = Actor("ana", "ana", "test")
WHO = SubjectNames(("who",))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A project with a source of each format."""
    (tmp_path / "errata.yaml").write_text(PROJECT)
    return open_workspace(str(tmp_path))


@pytest.fixture
def client(workspace: Workspace) -> Iterator[Client]:
    """Its client."""
    with build_client(workspace) as client:
        yield client


@pytest.fixture
def redact(workspace: Workspace) -> Callable[..., Redaction]:
    """Takes these ids out of the recordings of a source."""

    def act(*ids: str, names: SubjectNames = WHO, source: str = "orders") -> Redaction:
        return redact_recordings(workspace, ANA, {source: names}, set(ids).__contains__, "request 114")

    return act


def drop(root: Path, name: str, content: bytes) -> str:
    path = root / "landing" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1_767_500_000, 1_767_500_000))
    return str(path)


def list_bytes(root: Path) -> bytes:
    """Everything below the recordings, unpacked."""
    found = [path.read_bytes() for path in sorted((root / "recordings").rglob("*")) if path.is_file()]
    return b"".join(gzip.decompress(one) if one.startswith(b"\x1f\x8b") else one for one in found)


@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_a_subject_are_gone_and_all_others_keep_their_place(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, packed: bool
):
    """Also from lines that are no rows; both hashes are on record, and the numbers of the other lines are the same."""
    name, content = ("a.json.gz", gzip.compress(JSON)) if packed else ("a.json", JSON)
    (old,) = client.import_files(drop(tmp_path, name, content), "orders").files
    done = redact(SUBJECT)
    (held,) = client.recordings("orders").files
    assert [(one.rows, one.bad_rows, one.redacted_as) for one in done.files] == [(1, 1, held.file_id)]
    assert (held.supersedes, held.rows, held.bad_rows, held.why) == (
        old.file_id,
        2,
        0,
        f"{old.file_id[:12]} without rows of erased subjects",
    )
    stored = tmp_path / "recordings" / held.place
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == held.sha256 == done.files[0].redacted_sha256
    rows = pq.read_table(f"{stored}.rows.parquet").to_pylist()
    assert [(row["__errata_line"], row["id"], row["x"]) for row in rows] == [(3, "2", None), (5, "3", "1.10")]
    assert SUBJECT.encode() not in list_bytes(tmp_path)
    (gone,) = [one for one in client.recordings("orders", every=True).files if one.file_id == old.file_id]
    assert (gone.status, gone.sha256, bool(gone.expired_at)) == ("expired", old.sha256, True)
    assert gone.why == f"erasure: redacted as {held.file_id[:12]}"
    (entry,) = [one for one in client.audit_log() if one.action == "recording.redacted"]
    assert (entry.body["sha256"], entry.body["redacted_sha256"], entry.body["reason"]) == (
        held.sha256,
        old.sha256,
        "request 114",
    )
    assert client.audit_verify().ok
    assert redact(SUBJECT) == Redaction((), {}, ())


def test_a_redacted_file_does_not_come_back_when_it_is_imported_again(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path
):
    """The file still lies in the landing directory: importing the directory again stores nothing of it."""
    path = drop(tmp_path, "a.json", JSON + b"broken\n")
    client.import_files(path, "orders")
    redact(SUBJECT)
    (again,) = client.import_files(path, "orders").files
    assert (again.already, again.notes) == (
        True,
        ("this content was taken out of the recordings for erased subjects; it is not stored again",),
    )
    (other,) = client.import_files(path, "orders", start="2026-01-03", end="2026-01-04").files
    assert other.already
    assert SUBJECT.encode() not in list_bytes(tmp_path)


@pytest.mark.parametrize("written", ["4711", '"4711"', "4711.0", '" 04711"'])
def test_a_number_is_the_same_subject_however_it_is_written(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, written: str
):
    """A column of whole numbers would make one id of them, so the redaction does too."""
    content = f'{{"who": {written}}}\n{{"who": 47110}}\n'.encode() if not written.startswith("0") else b""
    client.import_files(drop(tmp_path, "a.json", content), "orders")
    assert [one.rows for one in redact("4711").files] == [1]
    assert client.recordings("orders").files[0].rows == 1


def test_rows_of_csv_and_parquet_go_too(client: Client, redact: Callable[..., Redaction], tmp_path: Path):
    """A header stays, types stay, and names of columns may differ in case."""
    client.import_files(drop(tmp_path, "a.csv", b"Who;n\nana-4711;1\nbo;2\n"), "rates")
    redact(SUBJECT, source="rates")
    (held,) = client.recordings("rates").files
    assert (tmp_path / "recordings" / held.place).read_bytes() == b"Who;n\n\nbo;2\n"
    table = pa.table({"who": pa.array([7, 8, None], pa.int64()), "n": pa.array(["a", "b", "c"])})
    pq.write_table(table, tmp_path / "a.parquet")
    client.import_files(str(tmp_path / "a.parquet"), "lines")
    redact("7", source="lines")
    (held,) = client.recordings("lines").files
    found = pq.read_table(tmp_path / "recordings" / held.place)
    assert found.equals(table.slice(1))


def test_what_no_longer_counts_is_removed_and_what_cannot_be_told_is_named(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path
):
    """Superseded and rejected files have no successor; a file without the column, or with bad lines, is reported."""
    client.import_files(drop(tmp_path, "a.json", JSON), "orders")
    client.import_files(drop(tmp_path, "a.json", b'{"who": "bo"}\nbroken\n'), "orders")
    client.import_files(drop(tmp_path, "b.json", b"ana-4711 only\n"), "orders")
    client.import_files(drop(tmp_path, "c.json", b'{"id": 9}\n'), "orders")
    done = redact(SUBJECT)
    held = {one.name: one for one in client.recordings("orders").files}
    assert [(one.name, one.redacted_as) for one in done.files] == [("a.json", None), ("b.json", None)]
    assert done.unproven == {
        held["a.json"].file_id: "1 of its lines are no rows",
        held["c.json"].file_id: "it has no column who",
    }
    assert SUBJECT.encode() not in list_bytes(tmp_path)


MESSAGES = [
    ("k", f'{{"who": "{SUBJECT}", "n": 1}}'),
    ("k", '{"who": "bo", "n": 1.10}'),
    (f'{{"who": "{SUBJECT}"}}', '{"who": null, "n": 2}'),
    ("k", f'{{"who": "{SUBJECT}", "who": "bo"}}'),
    ("k", f"{SUBJECT} is no JSON"),
    ("k", f'[{{"who": "{SUBJECT}"}}]'),
    (SUBJECT, None),
    ("k", '{"n": 3}'),
]


def drop_messages(root: Path, form: str, messages: list[tuple[str | None, str | None]]) -> str:
    """A recorded topic in one of its formats."""
    rows = [{"key": key, "value": value, "partition": 0, "offset": n} for n, (key, value) in enumerate(messages)]
    if form == "json":
        return drop(root, "topic.json", "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    pq.write_table(pa.Table.from_pylist(rows), root / "topic.parquet")
    return str(root / "topic.parquet")


@pytest.mark.parametrize("form, source", [("json", "orders"), ("parquet", "lines")])
def test_messages_of_a_recorded_topic_go_by_the_fields_of_their_key_and_value(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, form: str, source: str
):
    """Also those that nobody can read; all others stay as they are, with their offsets."""
    client.import_files(drop_messages(tmp_path, form, MESSAGES), source)
    done = redact(SUBJECT, names=SubjectNames(fields=("who",)), source=source)
    assert [(one.rows, one.bad_rows) for one in done.files] == [(3, 3)]
    (held,) = client.recordings(source).files
    stored = tmp_path / "recordings" / held.place
    read = f"{stored}.rows.parquet" if form == "json" else stored
    assert [(int(row["offset"]), row["value"]) for row in pq.read_table(read).to_pylist()] == [
        (1, '{"who": "bo", "n": 1.10}'), (7, '{"n": 3}'),
    ]  # fmt: skip
    assert SUBJECT.encode() not in list_bytes(tmp_path)
    assert redact(SUBJECT, names=SubjectNames(fields=("who",)), source=source) == Redaction((), {}, ())


@pytest.mark.parametrize("form, source", [("json", "orders"), ("parquet", "lines")])
def test_the_key_of_a_message_is_a_column_like_any_other(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, form: str, source: str
):
    """An input that names kafka_key finds the subject there, whatever the value is."""
    messages = [(SUBJECT, "text"), ("bo", "text"), (None, "text")]
    client.import_files(drop_messages(tmp_path, form, messages), source)
    done = redact(SUBJECT, names=SubjectNames(("key",)), source=source)
    assert [(one.rows, one.bad_rows) for one in done.files] == [(1, 0)]
    assert SUBJECT.encode() not in list_bytes(tmp_path)


CHANGES = [
    ('{"id": 1}', f'{{"op": "c", "before": null, "after": {{"id": 1, "who": "{SUBJECT}"}}}}'),
    ('{"id": 1}', f'{{"op": "d", "before": {{"id": 1, "who": "{SUBJECT}"}}, "after": null}}'),
    ('{"id": 1}', None),
    (None, '{"status": "END", "id": "7:8"}'),
]


@pytest.mark.parametrize("form, source", [("json", "orders"), ("parquet", "lines")])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_change_log_with_changes_of_a_subject_is_named_and_stays(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, form: str, source: str, wrapped: bool
):
    """Without some of its messages every later state would be wrong; a log of others is left alone."""
    messages = [(key, f'{{"payload": {value}}}' if wrapped and value else value) for key, value in CHANGES]
    client.import_files(drop_messages(tmp_path, form, messages), source)
    (held,) = client.recordings(source).files
    names = SubjectNames(fields=("who",), is_log=True)
    done = redact(SUBJECT, names=names, source=source)
    assert done.files == ()
    assert done.unproven == {
        held.file_id: "it has changes of erased subjects, and a change log would be wrong without some of its messages"
    }
    assert client.recordings(source).files == (held,)
    assert redact("bo", names=names, source=source) == Redaction((), {}, ())


def test_parquet_without_the_column_is_named(client: Client, redact: Callable[..., Redaction], tmp_path: Path):
    """Nobody can tell whom its rows are about."""
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    client.import_files(str(tmp_path / "a.parquet"), "lines")
    assert list(redact(SUBJECT, source="lines").unproven.values()) == ["it has no column who"]


def test_a_file_without_the_subject_is_left_alone(client: Client, redact: Callable[..., Redaction], tmp_path: Path):
    """Same id, same bytes, no entry in the audit."""
    client.import_files(drop(tmp_path, "a.json", JSON), "orders")
    before = (client.recordings("orders", every=True), len(client.audit_log()), list_bytes(tmp_path))
    redact("dora")
    assert (client.recordings("orders", every=True), len(client.audit_log()), list_bytes(tmp_path)) == before


SCRIPT = """\
import sys
from errata.commands.sources.redaction import redact_recordings
from errata.model.audit import Actor
from errata.model.recording.subject_names import SubjectNames
from errata.wiring import open_workspace
ana = Actor("ana", "ana", "test")
redact_recordings(open_workspace(sys.argv[1]), ana, {"orders": SubjectNames(("who",))}, {"ana-4711"}.__contains__, "r")
"""


@pytest.mark.parametrize("point", ["redact.after_store", "redact.after_record", "redact.after_remove"])
def test_a_killed_redaction_is_finished_by_the_same_call(
    client: Client, redact: Callable[..., Redaction], tmp_path: Path, point: str
):
    """At every boundary: one file counts, it has no row of the subject, and the bytes of the other are gone."""
    client.import_files(drop(tmp_path, "a.json", JSON), "orders")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    env = {**os.environ, "ERRATA_FAILPOINTS": f"{point}=kill"}
    killed = subprocess.run(command, env=env, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    redact(SUBJECT)
    (held,) = client.recordings("orders").files
    assert held.rows == 2
    assert SUBJECT.encode() not in list_bytes(tmp_path)
    assert sorted(one.status for one in client.recordings(every=True).files) == ["accepted", "expired"]
    assert client.audit_verify().ok
