"""`errata adopt --parquet`: plain Parquet files become a table where they are, once, or nothing happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

import errata
from errata.client import Client
from errata.errors import NotFound, PermissionRefused, PlanRefused, StateRefused, UsageError

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: %s
"""
NAME = "lake.raw.events"
DAYS = ("2026-01-01", "2026-01-02")


def write(root: Path, place: str, rows: dict[str, Any]) -> Path:
    """A Parquet file below the dataset."""
    path = root / "events" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), path)
    return path


def amounts(*texts: str) -> dict[str, Any]:
    return {
        "account": [f"a{n}" for n in range(len(texts))],
        "amount": pa.array(map(Decimal, texts), pa.decimal128(9, 2)),
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project, and a dataset of two days in three files."""
    (tmp_path / "errata.yaml").write_text(PROJECT % "single-user")
    sqlite3.connect(tmp_path / "catalog.db").close()
    write(tmp_path, f"day={DAYS[0]}/part-0.parquet", amounts("1.10", "2.00"))
    write(tmp_path, f"day={DAYS[0]}/part-1.parquet", amounts("3.00"))
    write(tmp_path, f"day={DAYS[1]}/part-0.parquet", amounts("4.00"))
    (tmp_path / "events/_SUCCESS").write_text("")
    (tmp_path / f"events/day={DAYS[0]}/.part-0.parquet.crc").write_bytes(b"crc")
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    """Its client."""
    with errata.open(str(root)) as client:
        yield client


def read_table(root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows and files of the table, by another reader."""
    uri = f"sqlite:///{root}/catalog.db"
    with closing(load_catalog("lake", type="sql", uri=uri, warehouse=str(root / "wh"))) as catalog:
        table = catalog.load_table("raw.events")
        rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (str(row["day"]), str(row.get("amount"))))
        return rows, sorted(table.inspect.files()["file_path"].to_pylist())


def test_files_become_a_table_where_they_are(client: Client, root: Path):
    """Nothing is copied; the column that only folders have is read from there; again, it is the same table."""
    before = sorted((root / "events").rglob("*"))
    done = client.adopt_parquet(NAME, "events")
    assert (done.files, done.rows, done.partitions, done.only_in_folders) == (3, 4, 2, ("day",))
    rows, files = read_table(root)
    assert [(row["day"], row["amount"]) for row in rows] == [
        (date(2026, 1, 1), Decimal("1.10")), (date(2026, 1, 1), Decimal("2.00")), (date(2026, 1, 1), Decimal("3.00")),
        (date(2026, 1, 2), Decimal("4.00")),
    ]  # fmt: skip
    assert files == sorted(f"file://{path}" for path in before if path.suffix == ".parquet")
    assert sorted((root / "events").rglob("*")) == before
    again = client.adopt_parquet(NAME, "events")
    assert (again.already, again.snapshot_id) == (True, done.snapshot_id)
    assert [one.action for one in client.audit_log()] == ["dataset.intended", "dataset.adopted"]
    assert "partition: {column: day, grain: day}" in client.adopt(NAME)


def test_several_folders_escaped_values_and_null_are_partitions(client: Client, root: Path):
    """Each level is a column; values that a narrower type would change stay text."""
    shutil.rmtree(root / "events")
    write(root, "region=a%2Fb/month=01/x.parquet", {"n": [1]})
    write(root, "region=__HIVE_DEFAULT_PARTITION__/month=12/x.parquet", {"n": [2]})
    done = client.adopt_parquet(NAME, "events")
    assert (done.partitions, done.only_in_folders) == (2, ("region", "month"))
    uri = f"sqlite:///{root}/catalog.db"
    with closing(load_catalog("lake", type="sql", uri=uri, warehouse=str(root / "wh"))) as catalog:
        rows = catalog.load_table("raw.events").scan().to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: row["n"]) == [
        {"n": 1, "region": "a/b", "month": "01"},
        {"n": 2, "region": None, "month": "12"},
    ]


def test_a_column_in_folders_and_files_must_be_the_same(client: Client, root: Path):
    """It is taken over if every file proves it, and refused by name if one does not."""
    for day in DAYS:
        for path in (root / f"events/day={day}").glob("*.parquet"):
            table = pq.read_table(path, partitioning=None)
            pq.write_table(table.append_column("day", pa.array([date.fromisoformat(day)] * len(table))), path)
    assert client.adopt_parquet(NAME, "events").only_in_folders == ()
    write(root, f"day={DAYS[1]}/wrong.parquet", amounts("9.00") | {"day": [date(2026, 1, 9)]})
    with pytest.raises(PlanRefused, match=r"other values of day than their folder.*day=2026-01-02/wrong\.parquet"):
        client.adopt_parquet("lake.raw.others", "events")


def spoil_schema(root: Path) -> None:
    write(root, f"day={DAYS[1]}/b.parquet", amounts("1") | {"amount": [1.5]})


def spoil_type(root: Path) -> None:
    (root / f"events/day={DAYS[1]}/b.csv").write_text("a,b\n")


def spoil_footer(root: Path) -> None:
    path = root / f"events/day={DAYS[1]}/part-0.parquet"
    path.write_bytes(path.read_bytes()[:-9])


def leave_unfinished(root: Path) -> None:
    write(root, f"day={DAYS[1]}/_temporary/0/part-7.parquet", amounts("1"))


def leave_half_written(root: Path) -> None:
    write(root, f"day={DAYS[1]}/.part-7.parquet.inprogress", amounts("1"))


def leave_folders(root: Path) -> None:
    write(root, "loose.parquet", amounts("1"))


def change_folders(root: Path) -> None:
    write(root, f"day={DAYS[1]}/hour=3/part-0.parquet", amounts("1"))


def add_ids(root: Path) -> None:
    fields = [
        pa.field("account", pa.string(), metadata={"PARQUET:field_id": "1"}),
        pa.field("amount", pa.decimal128(9, 2)),
    ]
    rows = pa.table([pa.array(["a"]), pa.array([Decimal(1)], pa.decimal128(9, 2))], schema=pa.schema(fields))
    pq.write_table(rows, root / f"events/day={DAYS[1]}/b.parquet")


def use_old_times(root: Path) -> None:
    shutil.rmtree(root / "events")
    path = write(root, f"day={DAYS[1]}/b.parquet", {"n": [1]})
    table = pa.table({"at": pa.array([0], pa.timestamp("ns"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)


def use_nanoseconds(root: Path) -> None:
    shutil.rmtree(root / "events")
    write(root, f"day={DAYS[1]}/b.parquet", {"at": pa.array([0], pa.timestamp("ns"))})


@pytest.mark.parametrize(
    "spoil, told",
    [
        (spoil_schema, r"schemas differ: day=2026-01-02/b\.parquet has amount double, other than"),
        (spoil_type, r"files that are not Parquet: day=2026-01-02/b\.csv"),
        (spoil_footer, r"footers cannot be read: day=2026-01-02/part-0\.parquet"),
        (leave_unfinished, r"a writer has not finished, or has died: day=2026-01-02/_temporary/0/part-7\.parquet"),
        (leave_half_written, r"has not finished.*\.inprogress"),
        (leave_folders, r"expected every file in folders such as day=2026-01-03.*found loose\.parquet"),
        (change_folders, r"expected the folders day=… everywhere; found day=2026-01-02/hour=3/part-0\.parquet"),
        (add_ids, r"field ids of another table.*b\.parquet"),
        (use_old_times, r"at is INT96, which readers take differently"),
        (use_nanoseconds, r"cannot have columns of these types: at timestamp\[ns\]"),
    ],
)
def test_files_that_do_not_fit_are_refused_by_name(
    client: Client, root: Path, spoil: Callable[[Path], None], told: str
):
    """No table is made, and no file is touched."""
    spoil(root)
    with pytest.raises(PlanRefused, match=told) as refused:
        client.adopt_parquet(NAME, "events")
    assert refused.value.state == "nothing was changed; no file was touched"
    with pytest.raises(NotFound):
        client.adopt(NAME)
    assert client.audit_log() == ()


def test_a_table_that_exists_is_left_alone(client: Client, root: Path):
    """Also one that was made of these files before they changed; a missing path and a missing role are refused."""
    client.adopt_parquet(NAME, "events")
    write(root, f"day={DAYS[1]}/late.parquet", amounts("5.00"))
    with pytest.raises(StateRefused, match="there is a table of this name that does not come from these files"):
        client.adopt_parquet(NAME, "events")
    assert len(read_table(root)[1]) == 3
    with pytest.raises(NotFound, match="there is no file below elsewhere"):
        client.adopt_parquet("lake.raw.more", "elsewhere")
    with pytest.raises(UsageError, match=r"expected catalog\.namespace\.table"):
        client.adopt_parquet("lake.events", "events")
    (root / "errata.yaml").write_text(PROJECT % "{bo: {roles: [approver]}}")
    with errata.open(str(root)) as other, pytest.raises(PermissionRefused):
        other.adopt_parquet("lake.raw.more", "events", as_="bo")


@pytest.mark.parametrize("point, is_there", [("dataset.before_commit", False), ("dataset.after_commit", True)])
def test_a_killed_adoption_is_finished_by_the_same_command(root: Path, point: str, is_there: bool):
    """The table has every file once, or is not there; repeated, it has every file once and is on record."""
    command = [sys.executable, "-m", "errata", "-C", str(root), "adopt", NAME, "--parquet", "events", "--json"]
    env = {**os.environ, "ERRATA_FAILPOINTS": f"{point}=kill"}
    killed = subprocess.run(command, env=env, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    if is_there:
        assert len(read_table(root)[1]) == 3
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert json.loads(done.stdout)["dataset"]["already"] is is_there
    assert [row["amount"] for row in read_table(root)[0]] == [Decimal(n) for n in ("1.10", "2.00", "3.00", "4.00")]
    with errata.open(str(root)) as client:
        actions = [one.action for one in client.audit_log()]
    assert actions.count("dataset.adopted") == 1
