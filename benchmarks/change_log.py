"""A change log of 200,000 messages in a topic: computing a table from it in one chunk and in four, ÷ a bare read.

Every chunk reads the whole log. Needs the broker of the tests; its jars are fetched once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import Goal, goals, heading, lines
from benchmarks.rounds import REPS, WARM, Ratio

__all__ = ["main"]

_QUICK, _QUICK_SECONDS = 2_000, 300
_KEYS, _PER_TRANSACTION, _DAYS = 10, 100, 4  # a tenth of the messages are rows of the first snapshot
_START_US, _BASE = 1_767_225_600_000_000, 10_000
PROJECT = """\
project: bench
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///lake/catalog.db", warehouse: lake/warehouse}
people: single-user
spark: {master: "local[2]"}
kafka:
  bench: {bootstrap: "BOOTSTRAP"}
"""
PRODUCT = """\
product: bench.orders
owner: bench
target:
  table: lake.bench.orders
  partition: {column: day, grain: day}
  key: [day, id]
transform: {call: "transforms.orders:build", version: 1.0.0}
inputs:
  orders:
    kafka: {cluster: bench, topic: cdc.public.orders}
    cdc: {as: state, key: [id], transactions: cdc.transaction}
    columns: {id: long, account: string, amount: "decimal(12,2)", created: timestamptz}
    partition: created
publish: {mode: replace_partitions, rollback_window: 30d}
"""
TRANSFORM = """\
from pyspark.sql import functions as F


def build(ctx, orders):
    return orders.select(F.to_date("created").alias("day"), "id", "account", "amount")
"""


def main(_root: Path, *, quick: bool) -> None:
    """Seconds of a run in one chunk and in four."""
    if not quick:
        _run(200_000)
        return
    # a process of its own: the session that other questions leave behind has no connector, and a limit ends it
    command = [sys.executable, "-m", "benchmarks.change_log"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_QUICK_SECONDS)
    print(done.stdout)


def _run(count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from errata.jars import fetch_jars, list_jars
    from support.kafka import KafkaBroker

    fetch_jars(jars=list_jars("spark", "kafka"))
    broker = KafkaBroker.start()
    try:
        broker.make_topic(2, "cdc.public.orders")
        broker.make_topic(1, "cdc.transaction")
        broker.send("cdc.public.orders", _list_changes(count))
        broker.send("cdc.transaction", _list_marks(count))
        with tempfile.TemporaryDirectory(prefix="errata-bench-") as root:
            _measure(Path(root), broker.bootstrap, count)
    finally:
        broker.stop()


def _list_changes(count: int) -> Iterator[dict[str, Any]]:
    """A snapshot of the table, then updates of its rows, one after the other."""
    keys = count // _KEYS
    for n in range(count):
        is_row, key = n < keys, n % keys
        mark = "first" if n == 0 else "last" if n == keys - 1 else "true" if is_row else "false"
        lsn, number = (_BASE, 1) if is_row else (_position(n), 2 + (n - keys) // _PER_TRANSACTION)
        source = {
            "name": "cdc", "snapshot": mark, "txId": number, "lsn": lsn, "db": "shop", "schema": "public",
            "table": "orders", "sequence": json.dumps([None if is_row else str(lsn), str(lsn)]), "ts_us": _START_US + n,
        }  # fmt: skip
        row = _build_row(key, n)
        told = {"op": "r" if is_row else "u", "before": None if is_row else _build_row(key, n - keys), "after": row}
        value = json.dumps({**told, "source": source})
        yield {"value": value, "key": json.dumps({"id": key}), "partition": key % 2}


def _build_row(key: int, n: int) -> dict[str, Any]:
    created = f"2026-01-{1 + key % _DAYS:02d}T08:00:00Z"
    return {"id": key, "account": f"a{key % 1000}", "amount": f"{n % 977}.25", "created": created}


def _position(n: int) -> int:
    return _BASE + 10 * n


def _list_marks(count: int) -> Iterator[dict[str, Any]]:
    keys = count // _KEYS
    for number, first in enumerate(range(keys, count, _PER_TRANSACTION), 2):
        last = min(first + _PER_TRANSACTION, count) - 1
        size = last - first + 1
        counted = [{"data_collection": "public.orders", "event_count": size}]
        begin = {"status": "BEGIN", "id": f"{number}:{_position(first)}"}
        end = {"status": "END", "id": f"{number}:{_position(last) + 5}", "event_count": size}
        yield {"value": json.dumps({**begin, "ts_ms": 0}), "partition": 0}
        yield {"value": json.dumps({**end, "data_collections": counted, "ts_ms": 0}), "partition": 0}


def _measure(root: Path, bootstrap: str, count: int) -> None:
    from errata.wiring import build_client, open_workspace

    files = {"errata.yaml": PROJECT.replace("BOOTSTRAP", bootstrap), "products/orders.yaml": PRODUCT}
    for name, text in {**files, "transforms/orders.py": TRANSFORM}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    for name in (".errata", "lake"):
        (root / name).mkdir()
    share = 400 * count // _DAYS
    chunked = {"one": "", "four": f"chunks: {{bytes: {share}}}\n"}
    found: dict[str, list[float]] = {"bare": [], **{name: [] for name in chunked}}
    for turn in range(WARM + REPS):
        for name, setting in chunked.items():
            (root / "errata.yaml").write_text(files["errata.yaml"] + setting, "utf-8")
            workspace = open_workspace(root)
            client, session = build_client(workspace), workspace.engines.runtime.session
            if turn == 0 and name == "one":
                session.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
                columns = "day date, id bigint, account string, amount decimal(12,2)"
                session.sql(f"CREATE TABLE lake.bench.orders ({columns}) USING iceberg PARTITIONED BY (day)")
            plan = client.plan("bench.orders", partitions="2026-01-01..2026-01-04", reason="bench", kind="bootstrap")
            if len(plan.chunks) != (1 if name == "one" else _DAYS):
                raise AssertionError(f"{name}: {len(plan.chunks)} chunks")
            client.approve(str(plan.id), digest=plan.digest)
            seconds = {name: _time(partial(client.run, str(plan.id)))}
            client.cancel(str(plan.id), reason="bench")
            seconds["bare"] = _time(partial(_read_bare, session, bootstrap, count))
            if turn >= WARM:
                for what, took in seconds.items():
                    found[what].append(took)
            client.close()
    heading(
        f"A change log of {count:,} messages",
        f"Two topic partitions, a snapshot of {count // _KEYS:,} rows and updates in transactions of "
        f"{_PER_TRANSACTION}, as the state of four days. The bare read parses every message with Spark and counts the "
        "operations. Every chunk reads the whole log.",
    )
    bare, one, four = (Ratio.of(found[name]) for name in ("bare", "one", "four"))
    told = {"bare read": bare, "run in one chunk": one, "run in four chunks": four}
    lines(["", "wall s", "÷ bare"], [[name, f"{r.value:.1f} ({r.low:.1f}–{r.high:.1f})", f"{r.value / bare.value:.1f}"]
                                      for name, r in told.items()])  # fmt: skip
    # two bare reads in each turn, one after each run
    pairs = zip(found["one"], found["four"], found["bare"][::2], found["bare"][1::2], strict=True)
    more = [(many - few) / (_DAYS - 1) / ((first + second) / 2) for few, many, first, second in pairs]
    goals(Goal("each further chunk ÷ a bare read of its log", Ratio.of(more), at_most=5, digits=1))


def _time(act: Any) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _read_bare(session: Any, bootstrap: str, count: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "cdc.public.orders", "startingOffsets": "earliest"}
    rows = session.read.format("kafka").options(**options).option("endingOffsets", "latest").load()
    form = "op string, before map<string,string>, after map<string,string>, source struct<lsn:bigint,txId:bigint>"
    parsed = rows.selectExpr(f"from_json(cast(value as string), '{form}') AS m")
    seen = parsed.groupBy("m.op").agg(F.count("m.after"), F.max("m.source.lsn")).collect()
    if sum(row[1] for row in seen) != count:
        raise AssertionError(seen)


if __name__ == "__main__":
    _run(_QUICK)
