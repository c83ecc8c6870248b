"""Makes the project of ``test_old_project.py`` with the code that is here now, and the golden texts beside it.

The archive that is committed was made by commit 4aa135c. It stands for what users have, so it is not made again when a
test fails: later code has to take it as it is. Someone who needs another one, with what later versions can do, makes it
at that commit, under a new name::

    cd tests && PYTHONPATH=../src:. python compat/make.py

The ledger records who worked and where. There is no setting for that, so names of the machine, of its user and of its
boot are hidden from the whole process; the number and the start of a process stay. The keys are made for these tests
and are in the archive; their names say so.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType

import errata
from compat import old
from errata.cli.main import main
from errata.errors import ErrataError, ValidationRejected

WRITTEN = 1_770_000_000
"""When all files were written, as far as the archive tells: plans pin source files by this."""
LEFT_OUT = (".log", ".lock", "-shm", "-wal")

PROJECT = f"""\
project: old
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {{type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}}
spark:
  master: "local[2]"
  conf:
    spark.driver.memory: 1g
    spark.sql.shuffle.partitions: "2"
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
people:
  ana: {{roles: [requester, operator]}}
  bo: {{roles: [approver, publisher]}}
  airflow: {{roles: [operator, publisher], service: true}}
approval: {{valid: 100y}}
evidence: {{key: {old.KEY}, heads: heads, subject_key: test-only-people.key}}
chunk_bytes: "1"
"""
SALES = f"""\
product: {old.PRODUCT}
owner: finance
target:
  table: {old.TABLE}
  partition: {{column: day, grain: day}}
  key: [day, account]
transform: {{call: "transforms.sales:build", version: 2.0.0}}
inputs:
  raw:
    files: "raw/day={{day}}/*.parquet"
    partition: day
    rows:
      - {{name: negative, expression: "amount < 0", action: quarantine}}
    quarantine: {{warn: 70%, block: 90%}}
publish: {{mode: replace_partitions, rollback_window: 100y}}
checks:
  - {{metric: rowCount, mustBeGreaterOrEqualTo: 1}}
  - {{metric: nullValues, column: account, mustBe: 0}}
  - {{metric: duplicateValues, columns: [day, account], mustBe: 0}}
reconcile:
  - {{name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}}
compare:
  - {{name: {old.WARNING}, metric: "sum(gross)", warn: 5%, block: 90%}}
lineage_columns: [produced_by_run_id, restatement_reason]
"""
TRANSFORM = f"""\
from pyspark.sql import functions as F


def build(ctx, raw):
    if "{old.RUNS["failed"].days[0]}" in ctx.partitions:
        raise ValueError("no rates for this day")
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    return raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
"""


def make() -> None:
    """The archive and the golden texts; one that is there is never replaced."""
    if old.ARCHIVE.exists():
        sys.exit(f"{old.ARCHIVE.name} is there and stays; give ARCHIVE, GOLDENS and PLACE of old.py other names")
    _be_nobody()
    with old.alone() as root:
        _write_files(root)
        _write_table(root)
        with errata.open(str(root), narrate=_say) as client:
            _act(client, root)
        _pack(root)
    with old.unpacked() as root:
        _ask(root)


def _be_nobody() -> None:
    """No name of this machine or of who sits at it in the ledger, the tables or their files."""

    def hidden(place: Path) -> Path:
        raise OSError(f"{place} is hidden")

    os.environ |= dict.fromkeys(("LOGNAME", "USER", "HADOOP_USER_NAME", "SPARK_USER"), "someone")
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    socket.gethostname = lambda: "somewhere"
    Path.readlink = hidden  # the ledger then does not know in which boot and container a process ran


def _write_files(root: Path) -> None:
    texts = {"errata.yaml": PROJECT, "products/sales.yaml": SALES, "transforms/sales.py": TRANSFORM}
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")
    for day in old.DAYS:
        found = old.events(day)
        place = root / f"raw/day={day}/part-0.parquet"
        place.parent.mkdir(parents=True)
        kinds = pa.schema([("account", pa.string()), ("amount", pa.decimal128(12, 2))])
        columns = {"account": [account for account, _ in found], "amount": [amount for _, amount in found]}
        pq.write_table(pa.table(columns, schema=kinds), place)
        os.utime(place, (WRITTEN, WRITTEN))
    for name in (".errata", "heads", "evidence"):
        (root / name).mkdir()
    for key in (old.KEY, "test-only-people.key"):
        _errata("audit", "keygen", "-o", key)


def _write_table(root: Path) -> None:
    """What the live pipeline left behind: right rows, wrong gross."""
    home = root / ".errata"
    lake = {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}
    schema = Schema(
        NestedField(1, "day", DateType()),
        NestedField(2, "account", StringType()),
        NestedField(3, "gross", DecimalType(12, 2)),
        NestedField(4, "n", LongType()),
        NestedField(5, "produced_by_run_id", StringType()),
        NestedField(6, "restatement_reason", StringType()),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    values = [
        {"day": date.fromisoformat(day), "account": account, "gross": gross.quantize(Decimal("0.01")), "n": n}
        for day, account, gross, n in old.wrong(*old.DAYS)
    ]
    with closing(load_catalog("lake", **lake)) as catalog:
        catalog.create_namespace("fin")
        properties = {"format-version": "2", "write.distribution-mode": "hash"}
        table = catalog.create_table("fin.sales", schema, partition_spec=spec, properties=properties)
        table.append(pa.Table.from_pylist(values, schema=table.schema().as_arrow()))


def _act(client: Any, root: Path) -> None:
    """Every run, brought to its state."""
    steps = _steps(client)
    for name, run in old.RUNS.items():
        plan = client.plan(old.PRODUCT, partitions=run.scope, reason=name, as_="ana")
        for step in steps[name]:
            step(plan)
        found = client.status(plan.id).state
        assert found == run.state, (name, found)
    for name, place in old.BUNDLES.items():
        (run_id,) = (line.run_id for line in client.runs().runs if line.reason == name)
        view, content = client.evidence(run_id, as_="bo")
        assert view.notes == (), view.notes
        (root / place).write_bytes(content)
    client.audit_head()
    assert client.audit_verify().ok


def _steps(client: Any) -> dict[str, list[Callable[[Any], Any]]]:
    def approve(plan: Any) -> None:
        client.approve(plan.id, digest=plan.digest, note="looks right", as_="bo")

    def run(plan: Any) -> None:
        client.run(plan.id, as_="ana")

    def fail(plan: Any) -> None:
        with suppress(ErrataError):
            client.run(plan.id, as_="ana")

    def half(plan: Any) -> None:
        client.run(plan.id, max_chunks=1, as_="ana")

    def reject(plan: Any) -> None:
        with suppress(ValidationRejected):
            client.validate(plan.id, as_="ana")

    def accept(plan: Any) -> None:
        client.validate(plan.id, accept={old.WARNING: "the fix halves it"}, as_="bo")

    def release(plan: Any) -> None:
        client.release(plan.id, digest=client.status(plan.id).release_digest, note="checked", as_="bo")

    def publish(plan: Any) -> None:
        client.publish(plan.id, as_="airflow")

    def publish_first(plan: Any) -> None:
        client.publish(plan.id, partitions=plan.partitions[0], as_="bo")

    def roll_back(plan: Any) -> None:
        client.rollback(plan.id, reason="the bank asks to wait", as_="bo")

    def cancel(plan: Any) -> None:
        client.cancel(plan.id, reason="no longer needed", as_="ana")

    staged = [approve, run]
    return {
        "approved": [approve],
        "staged": staged,
        "validated": [*staged, accept, release],
        "published": [*staged, reject, accept, release, publish],
        "taken-back": [*staged, accept, release, publish, roll_back],
        "cancelled": [*staged, cancel],
        "failed": [approve, fail],
        "rejected": [*staged, reject],
        "half-done": [approve, half],
        "half-published": [*staged, accept, publish_first],
        "planned": [],
    }


def _pack(root: Path) -> None:
    """One archive; the same files give the same bytes."""
    for database in ("ledger", "catalog"):
        with closing(sqlite3.connect(root / f".errata/{database}.db")) as opened:
            assert opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    with (
        old.ARCHIVE.open("xb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for place in _kept(root):
            entry = archive.gettarinfo(place, str(place.relative_to(root)))
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "", "", WRITTEN
            with place.open("rb") as content:
                archive.addfile(entry, content)
    _say(f"wrote {old.ARCHIVE.name}, {old.ARCHIVE.stat().st_size} bytes")


def _kept(root: Path) -> Iterator[Path]:
    for place in sorted(root.rglob("*")):
        if place.is_file() and not place.name.endswith(LEFT_OUT) and "__pycache__" not in place.parts:
            yield place


def _ask(root: Path) -> None:
    """The answers about each run, as golden texts."""
    old.GOLDENS.mkdir(exist_ok=True)
    runs = {line["reason"]: line["run_id"] for line in json.loads(_errata("runs", "--json"))["runs"]}
    for name in old.RUNS:
        for golden, words in old.commands(name, runs[name]).items():
            (old.GOLDENS / golden).write_text(_errata(*words, "--json"), "utf-8")


def _errata(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["-C", str(old.PLACE), "--as", "ana", *words])
    assert code == 0, (words, code)
    return out.getvalue()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    make()
