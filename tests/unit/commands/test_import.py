"""`errata import` and `errata recordings`: every file is recorded as a whole, once, with its reason."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import errata
from errata.cli.render.sources.recordings import render_import
from errata.client import Client
from errata.errors import NotFound, PermissionRefused, UsageError
from errata.failpoints import arm
from support.clock import later

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: %s
sources:
  orders: {format: json, range: {name: "orders_{%%Y-%%m-%%d}*"}, duplicates: %s}
  rates: {format: csv, keep: 30d}
"""
ROWS = b'{"id": 1, "amount": 1.10}\n{"id": 2, "amount": 2}\n'


@pytest.fixture
def open_project(tmp_path: Path) -> Callable[..., Client]:
    """Opens a project with two sources."""
    (tmp_path / "landing").mkdir()

    def open_it(duplicates: str = "ignored", people: str = "single-user") -> Client:
        (tmp_path / "errata.yaml").write_text(PROJECT % (people, duplicates))
        return errata.open(str(tmp_path))

    return open_it


def drop(root: Path, name: str, content: bytes, at: int = 1_767_500_000) -> str:
    path = root / "landing" / name
    path.write_bytes(content)
    os.utime(path, (at, at))
    return str(path)


def test_an_import_copies_hashes_and_numbers(open_project: Callable[..., Client], tmp_path: Path):
    """The copy has the bytes of the file; its rows keep their digits and line numbers; the audit has both hashes."""
    path = drop(tmp_path, "orders_2026-01-03.json", ROWS + b"oops\n")
    with open_project() as client:
        (done,) = client.import_files(path, "orders").files
        (held,) = client.recordings("orders").files
        (entry,) = client.audit_log()
        assert client.audit_verify().ok
    stored = tmp_path / "recordings" / held.place
    assert stored.read_bytes() == ROWS + b"oops\n" == Path(path).read_bytes()
    assert held.sha256 == done.sha256 == hashlib.sha256(ROWS + b"oops\n").hexdigest()
    assert (held.rows, held.bad_rows, held.start) == (3, 1, "2026-01-03T00:00:00Z")
    rows = Path(f"{stored}.rows.parquet")
    assert held.content_sha256 == hashlib.sha256(rows.read_bytes()).hexdigest()
    found = [(row["__errata_line"], row["amount"], row["__errata_problem"]) for row in pq.read_table(rows).to_pylist()]
    assert found == [(1, "1.10", None), (2, "2", None), (3, None, "line not JSON")]
    assert (entry.action, entry.body["sha256"]) == ("recording.accepted", held.sha256)


def test_a_repeated_import_changes_nothing(open_project: Callable[..., Client], tmp_path: Path):
    """Also of a directory, to which one file was added: only that one is new."""
    drop(tmp_path, "orders_2026-01-03.json", ROWS)
    with open_project() as client:
        client.import_files(str(tmp_path / "landing"), "orders")
        drop(tmp_path, "orders_2026-01-04.json", ROWS[:26])
        drop(tmp_path, "_SUCCESS", b"")
        done = client.import_files(str(tmp_path / "landing"), "orders")
        assert [one.already for one in done.files] == [True, False]
        assert len(client.audit_log()) == 2


def test_an_unusable_file_is_kept_with_its_reason(open_project: Callable[..., Client], tmp_path: Path):
    """It is copied to rejected, the reason is beside it, on record and in the answer; no run will read it."""
    path = drop(tmp_path, "orders_2026-01-03.json.gz", gzip.compress(ROWS)[:-9])
    with open_project() as client:
        view = client.import_files(path, "orders")
        (held,) = client.recordings("orders", every=True).files
        assert client.recordings("orders").files == ()
        assert client.audit_verify().ok
    assert (view.rejected[0].why, held.status) == ("it is cut off in the middle of gzip", "rejected")
    stored = tmp_path / "recordings" / held.place
    assert stored.read_bytes() == Path(path).read_bytes()
    assert (stored.parent / "reason.txt").read_text() == f"{held.why}\n"


def test_a_correction_supersedes_the_file_of_the_same_name(open_project: Callable[..., Client], tmp_path: Path):
    """Both are on record; only the new one counts."""
    path = drop(tmp_path, "orders_2026-01-03.json", ROWS)
    with open_project("correction") as client:
        first = client.import_files(path, "orders").files[0]
        drop(tmp_path, "orders_2026-01-03.json", ROWS.replace(b"1.10", b"1.20"), at=1_767_600_000)
        second = client.import_files(path, "orders").files[0]
        assert second.supersedes == first.file_id
        assert [one.file_id for one in client.recordings("orders").files] == [second.file_id]
        assert {one.status for one in client.recordings("orders", every=True).files} == {"accepted", "superseded"}
        assert client.audit_verify().ok


def test_other_columns_than_before_are_said(open_project: Callable[..., Client], tmp_path: Path):
    """The file is accepted, because eras can adapt it, and the person is told which columns came and went."""
    with open_project() as client:
        client.import_files(drop(tmp_path, "a.csv", b"id,rate\n1,2\n"), "rates")
        (done,) = client.import_files(drop(tmp_path, "b.csv", b"id,price\n1,2\n"), "rates").files
    assert done.notes == ("other columns than the file before: +price -rate",)


AVRO = b"Obj\x01\x04\x14avro.codec\x08null\x16avro.schema\xba\x01" + bytes(range(256)) * 8


@pytest.mark.parametrize(
    "source, name, content, why",
    [
        ("orders", "orders_2026-01-03.json", AVRO, "is a row of json"),
        ("rates", "a.csv", AVRO, "its first line is not a header"),
        ("rates", "b.csv", b"PAR1\x00\x01PAR1", "which is no name that can be used"),
    ],
)
def test_a_file_of_another_format_is_rejected_by_its_reason(
    open_project: Callable[..., Client], tmp_path: Path, source: str, name: str, content: bytes, why: str
):
    """Avro or Parquet under the name of a text file is no row of anything, and never an empty input."""
    with open_project() as client:
        (refused,) = client.import_files(drop(tmp_path, name, content), source).rejected
        assert why in refused.why
        assert client.audit_verify().ok


def test_a_byte_order_mark_is_no_part_of_the_first_column(open_project: Callable[..., Client], tmp_path: Path):
    """As programs for spreadsheets write it; before JSON it is no part of the first line."""
    with open_project() as client:
        client.import_files(drop(tmp_path, "a.csv", b"\xef\xbb\xbfid,rate\r\n1,2\r\n"), "rates")
        assert client.recordings().files[0].columns == ("id", "rate")
        (done,) = client.import_files(drop(tmp_path, "orders_2026-01-03.json", b"\xef\xbb\xbf" + ROWS), "orders").files
        assert (done.rows, done.bad_rows) == (2, 0)


def test_columns_of_csv_count_by_their_names_in_any_order(open_project: Callable[..., Client], tmp_path: Path):
    """A partner who moves a column moves no values; a header in the middle of a file is a row of its own."""
    with open_project() as client:
        client.import_files(drop(tmp_path, "a.csv", b"id,rate\n1,2\n"), "rates")
        (done,) = client.import_files(drop(tmp_path, "b.csv", b"rate,id\n2,1\nrate,id\n4,3\n"), "rates").files
        assert done.notes == ()
        (held,) = [one for one in client.recordings().files if one.name == "b.csv"]
    rows = pq.read_table(tmp_path / f"recordings/{held.place}.rows.parquet").to_pylist()
    assert [(row["__errata_line"], row["id"], row["rate"]) for row in rows] == [
        (2, "1", "2"),
        (3, "id", "rate"),
        (4, "3", "4"),
    ]


@pytest.mark.parametrize("point", ["import.before_copy", "import.after_copy", "import.after_record"])
def test_a_killed_import_is_finished_by_the_same_command(
    open_project: Callable[..., Client], tmp_path: Path, point: str
):
    """At every boundary: one row, one audit entry, one copy that has its hash, and no part of a file."""
    drop(tmp_path, "orders_2026-01-03.json", ROWS)
    open_project().close()
    command = [sys.executable, "-m", "errata", "-C", str(tmp_path), "import", "landing", "--source", "orders", "--json"]
    failing = {**os.environ, "ERRATA_FAILPOINTS": f"{point}=kill"}
    killed = subprocess.run(command, env=failing, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert [one["status"] for one in json.loads(done.stdout)["files"]] == ["accepted"]
    with open_project() as client:
        (held,) = client.recordings().files
        assert [one.action for one in client.audit_log()] == ["recording.accepted"]
    stored = [path for path in (tmp_path / "recordings").rglob("*") if path.is_file()]
    assert sorted(path.name for path in stored) == [held.name, f"{held.name}.rows.parquet"]
    assert hashlib.sha256((tmp_path / "recordings" / held.place).read_bytes()).hexdigest() == held.sha256


def test_what_cannot_be_imported_is_refused_before_anything_is_recorded(
    open_project: Callable[..., Client], tmp_path: Path
):
    """An unknown source, half a range, a missing file, and a person without the role."""
    path = drop(tmp_path, "orders_2026-01-03.json", ROWS)
    with open_project() as client:
        with pytest.raises(NotFound, match="no source 'order'; expected one of orders, rates"):
            client.import_files(path, "order")
        with pytest.raises(UsageError, match="range with one end"):
            client.import_files(path, "orders", start="2026-01-03")
        with pytest.raises(NotFound, match="there is no file"):
            client.import_files(str(tmp_path / "elsewhere"), "orders")
        assert client.recordings(every=True).files == ()
    with open_project(people="{bo: {roles: [approver]}}") as client, pytest.raises(PermissionRefused):
        client.import_files(path, "orders", as_="bo")


def test_a_name_without_its_time_needs_the_time_from_a_person(open_project: Callable[..., Client], tmp_path: Path):
    """Without it the file is rejected, because nobody knows which days it is about; with it, it is accepted."""
    path = drop(tmp_path, "late-orders.json", ROWS)
    with open_project() as client:
        assert "does not match" in client.import_files(path, "orders").rejected[0].why
        (done,) = client.import_files(path, "orders", start="2026-01-03", end="2026-01-05").files
    assert (done.status, done.end) == ("accepted", "2026-01-05T00:00:00Z")


def test_a_file_is_removed_when_its_time_is_over_and_stays_on_record(
    open_project: Callable[..., Client], tmp_path: Path
):
    """A dry run shows it; then the bytes are gone, and time, policy and hash are on record. Before, nothing happens."""
    with open_project() as client:
        client.import_files(drop(tmp_path, "a.csv", b"id\n1\n"), "rates")
        client.import_files(drop(tmp_path, "orders_2026-01-03.json", ROWS), "orders")
        assert client.cleanup().removed == ()
    with open_project() as client, later(days=31):
        assert [one["ref"] for one in client.cleanup(dry_run=True).removed] == ["a.csv"]
        assert (tmp_path / "recordings" / client.recordings("rates").files[0].place).exists()
        assert [one["why"] for one in client.cleanup().removed] == ["sources.rates.keep: 30d"]
        (gone,) = client.recordings("rates", every=True).files
        assert (gone.status, gone.why, bool(gone.expired_at)) == ("expired", "sources.rates.keep: 30d", True)
        assert client.cleanup().removed == ()
        assert client.audit_verify().ok
    assert [path.name for path in (tmp_path / "recordings/rates").rglob("*") if path.is_file()] == []
    assert (tmp_path / "recordings/orders").exists()


def test_a_file_whose_removal_was_interrupted_is_removed_by_the_next_cleanup(
    open_project: Callable[..., Client], tmp_path: Path
):
    """Recorded as expired, then the process dies: the bytes are there until the next clean-up."""

    def die() -> None:
        raise KeyboardInterrupt

    with open_project() as client:
        client.import_files(drop(tmp_path, "a.csv", b"id\n1\n"), "rates")
    with open_project() as client, later(days=31):
        with arm("cleanup.after_expire", die), pytest.raises(KeyboardInterrupt):
            client.cleanup()
        assert list((tmp_path / "recordings/rates").rglob("*.csv")) != []
        client.cleanup()
    assert [path for path in (tmp_path / "recordings/rates").rglob("*") if path.is_file()] == []


def test_the_first_line_counts_rejected_files_apart(open_project: Callable[..., Client], tmp_path: Path):
    """A file that was rejected is not recorded, and one that was rejected before is not on record either."""
    drop(tmp_path, "orders_2026-01-03.json", ROWS + b"oops\n")
    drop(tmp_path, "orders_2026-01-04.json", b"oops\n")
    with open_project() as client:
        first, again = (client.import_files(str(tmp_path / "landing"), "orders") for _ in range(2))
    assert render_import(first, 120)[0] == "orders   1 file recorded   1 rejected"
    assert render_import(again, 120)[0] == "orders   0 files recorded   1 on record before   1 rejected"
    assert [one.notes for one in first.files] == [("1 bad line; runs quarantine it",), ()]
