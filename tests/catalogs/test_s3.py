"""Warehouse and source files on S3: a whole correction against a moto server, and source objects that changed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import errata
from errata.errors import RunFailed
from errata.jars import list_jars
from support.clock import later
from support.jars import missing
from support.lakes import Lake
from support.moto import KEY, REGION, SECRET, MotoServer
from support.world import PRODUCT_FILE, World, write_raw

Make = Callable[..., World]

PRODUCT = PRODUCT_FILE.replace('"raw/day={day}/*.parquet"', '"s3://raw/sales/day={day}/*.parquet"')


@pytest.fixture(scope="session")
def s3() -> Iterator[MotoServer]:
    """An S3 with two buckets, raw and lake."""
    if reason := missing("s3"):
        pytest.skip(reason)
    with MotoServer.running() as server:
        for bucket in ("raw", "lake"):
            server.client().create_bucket(Bucket=bucket)
        yield server


@pytest.fixture
def make_lake(s3: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Lake]:
    """A catalog in SQLite whose tables lie on S3."""
    monkeypatch.setenv("ERRATA_TEST_S3_SECRET", SECRET)
    keys = f'access_key_id: "{KEY}", secret_access_key: "${{ERRATA_TEST_S3_SECRET}}"'

    def on_s3(root: Path) -> Lake:
        warehouse = f"s3://lake/{tmp_path.name}"
        return Lake(
            yaml=f'{{type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: "{warehouse}"}}',
            storage=f'{{s3: {{endpoint: "{s3.endpoint}", region: {REGION}, path_style: true, {keys}}}}}',
            pyiceberg={
                "type": "sql", "uri": f"sqlite:///{root}/.errata/catalog.db", "warehouse": warehouse,
                "s3.endpoint": s3.endpoint, "s3.region": REGION,
                "s3.access-key-id": KEY, "s3.secret-access-key": SECRET,
            },
        )  # fmt: skip

    return on_s3


def upload(world: World, s3: MotoServer) -> None:
    """The world's raw files as objects, and nothing else."""
    client = s3.client()
    for old in client.list_objects_v2(Bucket="raw").get("Contents", ()):
        client.delete_object(Bucket="raw", Key=old["Key"])
    for day in world.days:
        file = world.root / f"raw/day={day}/part-0.parquet"
        client.put_object(Bucket="raw", Key=f"sales/day={day}/part-0.parquet", Body=file.read_bytes())


def read_apart(s3: MotoServer, days: tuple[str, ...]) -> list[tuple[str, str, Decimal, int]]:
    """The right answer from the objects themselves, by pyarrow."""
    system = fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=s3.endpoint.removeprefix("http://"),
        scheme="http",
    )  # fmt: skip
    totals: dict[tuple[str, str], tuple[Decimal, int]] = {}
    for day in days:
        for row in pq.read_table(f"raw/sales/day={day}", filesystem=system, partitioning=None).to_pylist():
            gross, n = totals.get((day, row["account"]), (Decimal(0), 0))
            totals[day, row["account"]] = (gross + row["amount"], n + 1)
    return sorted((day, account, gross, n) for (day, account), (gross, n) in totals.items())


def test_a_correction_on_s3_reads_pinned_objects_and_is_published_and_taken_back(make_world: Make, s3: MotoServer):
    """Raw objects through s3a, the table through S3FileIO; every live file is on S3, and no secret is anywhere."""
    world = make_world(days=3, product=PRODUCT)
    upload(world, s3)
    run = world.to("validated")
    manifest = world.ledger.runs.manifest(run)
    (pin,) = manifest.inputs
    files = json.loads(world.ledger.parts.get(str(pin.files_part)))
    assert {file["version"] for part in files.values() for file in part} == {f"etag:{tag}" for tag in etags(s3)}
    assert manifest.code.jars.items() >= {jar.coordinate: jar.sha256 for jar in list_jars("s3")}.items()
    assert world.rows() == world.wrong()
    assert world.client.publish(run, as_="bo").data_files_written == 0
    assert world.rows() == read_apart(s3, world.days)
    assert all(path.startswith("s3://lake/") for paths in world.files().values() for path in paths)
    back = world.client.rollback(run, partitions=world.days[0], reason="undo", as_="bo")
    assert back.data_files_written == 0
    assert [row for row in world.rows() if row[0] == world.days[0]] == world.wrong(world.days[:1])
    assert in_files(world.root) == []


@pytest.mark.parametrize("what", ["overwritten", pytest.param("missing", marks=pytest.mark.slow)])
def test_an_object_that_is_not_the_planned_one_fails_its_chunk_by_name(make_world: Make, s3: MotoServer, what: str):
    """Also when it has the size it had: its ETag tells. The other chunks go on, and nothing reaches main."""
    world = make_world(days=2, product=PRODUCT, chunk_bytes="1")
    upload(world, s3)
    run = world.to("approved")
    key = f"sales/day={world.days[0]}/part-0.parquet"
    content = (world.root / f"raw/day={world.days[0]}/part-0.parquet").read_bytes()
    if what == "missing":
        s3.client().delete_object(Bucket="raw", Key=key)
    else:
        other = write_raw(world.root / "other", world.days[1], 3).read_bytes()
        assert other != content
        s3.client().put_object(Bucket="raw", Key=key, Body=other[: len(content)].ljust(len(content), b"\0"))
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    view = failed.value.fields["run"]
    assert view.chunks.done == 1
    assert f"s3://raw/{key}" in view.failures[0]["error"]
    assert ("is missing" if what == "missing" else "changed: etag:") in view.failures[0]["error"]
    assert world.rows() == world.wrong()


@pytest.mark.slow
def test_processes_of_their_own_work_on_s3_and_show_no_secret(make_world: Make, s3: MotoServer):
    """Each command starts its own Java with the jars of S3; no command line on the machine has the secret meanwhile."""
    world = make_world(days=2, product=PRODUCT)
    upload(world, s3)
    run = world.to("approved")
    place = world.root / "errata.yaml"
    memory = "    spark.driver.memory: 1g\n"
    given = f'{memory}    spark.hadoop.fs.s3a.secret.key: "${{ERRATA_TEST_S3_SECRET}}"\n'
    assert memory in place.read_text()
    place.write_text(place.read_text().replace(memory, given))
    for command, person in (["doctor", "--deep"], "ana"), (["run", run], "ana"), (["validate", run], "ana"):
        started = subprocess.Popen(
            [sys.executable, "-m", "errata", "-C", str(world.root), "--as", person, *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        shown = []
        while started.poll() is None:
            shown += on_command_lines()
            time.sleep(0.2)
        said, _ = started.communicate()
        assert shown == []
        assert started.returncode == 0, said
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == read_apart(s3, world.days)
    assert in_files(world.root) == []


def etags(s3: MotoServer) -> list[str]:
    """As the store itself says."""
    return [entry["ETag"].strip('"') for entry in s3.client().list_objects_v2(Bucket="raw")["Contents"]]


def on_command_lines() -> list[str]:
    """Processes of this machine whose command line has the secret key."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if SECRET.encode() in place.read_bytes():
                found.append(place.parent.name)
        except OSError:  # the process is gone
            continue
    return found


def in_files(root: Path) -> list[str]:
    """Files of the project that hold the secret key.

    Read by another process: one that closes a SQLite file loses the locks that it has on it through other handles.
    """
    needle = root.parent / "needle"
    needle.write_text(SECRET, "utf-8")
    answer = subprocess.run(["grep", "-rlF", "-f", str(needle), str(root)], capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stderr
    return answer.stdout.splitlines()


def test_files_on_s3_are_recorded_on_s3(s3: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Imported from one bucket to another, hashed, found again, and removed when their time is over."""
    monkeypatch.setenv("ERRATA_TEST_S3_SECRET", SECRET)
    keys = f'access_key_id: "{KEY}", secret_access_key: "${{ERRATA_TEST_S3_SECRET}}"'
    where = f"recorded-{tmp_path.name}"
    (tmp_path / "errata.yaml").write_text(
        "project: p\nledger: sqlite:///ledger.db\npeople: single-user\n"
        'catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}\n'
        f'storage: {{s3: {{endpoint: "{s3.endpoint}", region: {REGION}, path_style: true, {keys}}}}}\n'
        f"sources: {{orders: {{format: json, keep: 30d}}}}\nrecordings: {{location: 's3://lake/{where}'}}\n"
    )
    s3.client().put_object(Bucket="raw", Key=f"{where}/a.json", Body=b'{"id": 1}\n')
    with errata.open(str(tmp_path)) as client:
        (done,) = client.import_files(f"s3://raw/{where}", "orders").files
        assert client.import_files(f"s3://raw/{where}", "orders").files[0].already
        (held,) = client.recordings().files
        place = f"{where}/{held.place}"
        stored = s3.client().get_object(Bucket="lake", Key=place)["Body"].read()
        assert (stored, done.sha256) == (b'{"id": 1}\n', hashlib.sha256(stored).hexdigest())
        rows = s3.client().get_object(Bucket="lake", Key=f"{place}.rows.parquet")["Body"].read()
        assert hashlib.sha256(rows).hexdigest() == held.content_sha256
        with later(days=31):
            assert [one["ref"] for one in client.cleanup().removed] == ["a.json"]
    left = s3.client().list_objects_v2(Bucket="lake", Prefix=f"{where}/").get("Contents", ())
    assert [one["Key"] for one in left if one["Size"]] == []  # pyarrow leaves an empty object for the directory


def test_parquet_files_on_s3_become_a_table_where_they_are(
    s3: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The table names the objects of the bucket, and reads the day from their keys."""
    monkeypatch.setenv("ERRATA_TEST_S3_SECRET", SECRET)
    keys = f'access_key_id: "{KEY}", secret_access_key: "${{ERRATA_TEST_S3_SECRET}}"'
    where = f"events-{tmp_path.name}"
    (tmp_path / "errata.yaml").write_text(
        "project: p\nledger: sqlite:///ledger.db\npeople: single-user\n"
        f'catalogs: {{lake: {{type: jdbc, uri: "sqlite:///catalog.db", warehouse: "s3://lake/{where}"}}}}\n'
        f'storage: {{s3: {{endpoint: "{s3.endpoint}", region: {REGION}, path_style: true, {keys}}}}}\n'
    )
    sqlite3.connect(tmp_path / "catalog.db").close()
    place = tmp_path / "one.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), place)
    for day in ("2026-01-03", "2026-01-04"):
        s3.client().put_object(Bucket="raw", Key=f"{where}/day={day}/a.parquet", Body=place.read_bytes())
    with errata.open(str(tmp_path)) as client:
        done = client.adopt_parquet("lake.raw.events", f"s3://raw/{where}")
        assert (done.files, done.rows, done.partitions) == (2, 4, 2)
        assert client.adopt_parquet("lake.raw.events", f"s3://raw/{where}/").already
        assert "partition: {column: day, grain: day}" in client.adopt("lake.raw.events")
    assert in_files(tmp_path) == []
