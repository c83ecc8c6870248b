"""The whole example in the guide of change data capture, on a real database, connector, broker and lake."""

from __future__ import annotations

import io
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import errata
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from errata.wiring import open_workspace
from support.connect import LOGICAL, Connector, find_reason
from support.guides import GUIDES
from support.invariants import assert_invariants
from support.postgres import PostgresServer, server_programs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.kafka import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PAGE, SECTION, PREFIX = "change-data-capture.md", "## A whole example, over topics\n", "guide"
_LIMIT_SECONDS = 120
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_VARIABLE = (
    (r"bf-\d{8}-orders-[0-9a-f]{8}(-p\d-[0-9a-f]{6})?(_\w+)?", "RUN"),
    (r"\b[0-9a-f]{16,64}\b|\b\d{16,}\b", "ID"),
    (r"\b[0-9A-F]+/[0-9A-F]+\b", "POSITION"),
    (r"[\d.,]+", "N"),
)


def _list_blocks() -> list[tuple[str, str]]:
    """Language and text of every block of the section."""
    _, _, rest = (GUIDES / PAGE).read_text("utf-8").partition(SECTION)
    text = rest.partition("\n## ")[0].replace("cdc.public", f"{PREFIX}.public").replace("cdc.trans", f"{PREFIX}.trans")
    return _BLOCK.findall(text.replace("topic.prefix=cdc", f"topic.prefix={PREFIX}"))


def _normalize(line: str) -> str:
    """A line of output without what differs from run to run."""
    for pattern, word in _VARIABLE:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


class Reader:
    """Types the commands of a console block and compares what is printed with what the page shows."""

    def __init__(self, directory: Path, base: SparkSession) -> None:
        self.directory, self.base = directory, base
        self.known: dict[str, str] = {}

    def follow(self, block: str) -> Iterator[str]:
        """Every command of the block; "…" stands for lines that the page leaves out."""
        for command, shown in _split_commands(block):
            printed = self._type(command)
            lines = {_normalize(line) for line in printed.splitlines()}
            for line in shown:
                assert line.strip() == "…" or _normalize(line) in lines, (command, line, printed)
            yield command

    def _type(self, command: str) -> str:
        program, *words = shlex.split(command)
        assert program == "errata", command

        def open_here(directory: Any, **_: Any) -> Any:
            return errata.open(str(directory), spark=self.base, narrate=lambda _: None)

        out, err = io.StringIO(), io.StringIO()
        line = ["-C", str(self.directory), *[self.known.get(word, word) for word in words]]
        code = main(line, Terminal(open_project=open_here, out=out, err=err, interactive=False, width=100))
        printed = out.getvalue()
        # what is stale makes `errata stale` exit with 1
        assert code == (1 if words[0] == "stale" else 0), (command, printed, err.getvalue())
        if words[0] == "plan":
            (run,) = set(re.findall(r"Plan (bf-[\w-]+)", printed))
            self.known = {"RUN": run, "SHA": str(re.findall(r"manifest ([0-9a-f]{64})", printed)[0])}
        return printed


def _split_commands(block: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A server whose log a connector can read, with an empty database."""
    if reason := find_reason():
        pytest.skip(f"there is no Kafka Connect: {reason}")
    if server_programs() is None:
        pytest.skip("there is no PostgreSQL server")
    server = PostgresServer.start(settings=LOGICAL)
    server.execute("CREATE DATABASE shop")
    yield server
    server.remove()


def test_the_whole_example_keeps_the_table_as_the_database_has_it(
    kafka: KafkaBroker, database: PostgresServer, base_spark: SparkSession, tmp_path: Path
) -> None:
    """Files are saved, statements run and commands typed in the order of the page, and print what it shows."""
    connector: Connector | None = None
    reader, root, spark = Reader(tmp_path / "mirror", base_spark), tmp_path / "mirror", None
    typed: list[str] = []
    try:
        for language, body in _list_blocks():
            first, name = body.splitlines()[0], body.splitlines()[0].lstrip("#- ")
            if language == "properties":
                connector = Connector.start(kafka, database, "shop", ("public.orders",), PREFIX)
                told = (connector.directory / "connector.properties").read_text("utf-8").splitlines()
                assert set(body.splitlines()) <= set(told)
            elif name.startswith("mirror/") and language != "sql":
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(body.replace("127.0.0.1:9092", kafka.bootstrap), "utf-8")
            elif name.startswith("mirror/"):
                for folder in (".errata", "lake"):
                    (root / folder).mkdir(exist_ok=True)
                spark = open_workspace(root, spark=base_spark).engines.runtime.session  # type: ignore[attr-defined]
                spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
                spark.sql(body.removeprefix(first))
            elif language == "sql":
                database.execute(*(one for one in body.split(";") if one.strip()), database="shop")
                if connector is not None:
                    _await_messages(kafka, database, PREFIX)
            elif language == "console":
                if not typed:
                    database.execute("UPDATE orders SET amount = 25.00 WHERE id = 2", database="shop")
                    _await_messages(kafka, database, PREFIX)
                typed += reader.follow(body)
                assert spark is not None
                rows = spark.sql("SELECT id, account, string(amount), string(day) FROM lake.shop.orders").collect()
                held = "SELECT id, account, amount::text, (created AT TIME ZONE 'UTC')::date::text FROM orders"
                assert sorted(map(tuple, rows)) == sorted(map(tuple, database.execute(held, database="shop")))
        assert [one.split()[1] for one in typed].count("publish") == 2
    finally:
        if connector is not None:
            connector.remove()
    lake = {"type": "sql", "uri": f"sqlite:///{root}/lake/catalog.db", "warehouse": f"file://{root}/lake/warehouse"}
    assert_invariants(root, lake)


def _await_messages(kafka: KafkaBroker, database: PostgresServer, prefix: str) -> None:
    """Wait until the connector has sent the END of everything that was committed so far."""
    (position,) = database.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn", database="shop")[0]
    # the END of a transaction of its own is later than everything before it
    database.execute("UPDATE orders SET account = account WHERE id = 2", database="shop")

    def is_sent() -> bool:
        marks = [one.value().decode() for one in kafka.read(f"{prefix}.transaction")]
        ends = (re.search(r'"END","id":"\d+:(\d+)"', one) for one in marks)
        return any(int(one[1]) >= int(position) for one in ends if one)

    _wait(is_sent)


def _wait(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + _LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)
