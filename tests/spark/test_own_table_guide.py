"""The guide "Your own table in fifteen minutes", as written: its files are saved and its commands typed, in order."""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark.sql
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import errata
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from errata.engines.iceberg.catalogs import java_properties
from errata.project import load_project

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/your-own-table.md"
INSTALLING = ("make setup", "source .venv/bin/activate")
WRONG = [f"2026-06-{day}" for day in range(11, 21)]


def steps() -> Iterator[tuple[str, str]]:
    """Every file to save, as its path and text, and every line to type, as ``$`` and the line, in the page's order."""
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "console":
            yield from (("$", line.removeprefix("$ ")) for line in body.splitlines())
        else:
            yield body.splitlines()[0].lstrip("#- "), body


class Builder:
    """A Spark session of the shared application with the settings that the script gives to its own."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.settings: dict[str, str] = {}

    def master(self, _: str) -> Builder:
        return self

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> SparkSession:  # noqa: N802  the name in Spark
        for key, value in self.settings.items():
            if key.startswith("spark.sql."):
                self.session.conf.set(key, value)
        return self.session


class Reader:
    """A reader of the guide, who has one directory and types one line after the other."""

    def __init__(self, directory: Path, spark: SparkSession, base: SparkSession) -> None:
        self.directory, self.spark, self.base = directory, spark, base
        self.builder = Builder(spark)
        self.known: dict[str, str] = {}
        self.typed: list[str] = []

    def type(self, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """One line; placeholders take what `plan` answered."""
        program, *words = shlex.split(line)
        if line in INSTALLING:
            return
        if program == "cd":
            self.directory /= words[0]
        elif program == "python":
            with monkeypatch.context() as patch:
                patch.setattr(pyspark.sql.SparkSession, "builder", self.builder)
                runpy.run_path(str(self.directory / words[0]))
        else:
            assert program == "errata", line
            self.errata(words)

    def errata(self, words: list[str]) -> None:
        def open_here(directory: Any, **_: Any) -> Any:
            return errata.open(str(directory), spark=self.base, narrate=lambda _: None)

        out, err = io.StringIO(), io.StringIO()
        line = ["-C", str(self.directory), *[self.known.get(word, word) for word in words], "--json"]
        code = main(line, Terminal(open_project=open_here, out=out, err=err, interactive=False))
        assert code == 0, (words, out.getvalue(), err.getvalue())
        answer = json.loads(out.getvalue())
        if words[0] == "plan":
            self.known = {"RUN": answer["run_id"], "SHA": answer["manifest_digest"]}
        if words[0] == "publish":
            assert read_wrong_days(self.directory) == []
        self.typed.append(words[0])


def read_wrong_days(project: Path) -> list[str]:
    """Days of the table on which a net amount is not amount minus discount, read by pyiceberg."""
    lake = load_catalog("lake", type="sql", uri=f"sqlite:///{project}/lake/catalog.db")
    rows = lake.load_table("shop.orders").scan().to_arrow().to_pylist()
    lake.close()
    assert len(rows) == 3600
    wrong = {
        row["event_ts"].date().isoformat()
        for row in rows
        if row["net"] != row["amount"] - Decimal(int(row["order_id"].removeprefix("o-")) % 5)
    }
    return sorted(wrong)


def test_the_guide_leads_from_a_table_to_its_correction_and_back(
    tmp_path: Path, spark: SparkSession, base_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten wrong days are right once published, and the day that is rolled back is wrong again."""
    reader = Reader(tmp_path, spark, base_spark)
    for what, text in steps():
        if what == "$":
            reader.type(text, monkeypatch)
        else:
            (reader.directory / what).parent.mkdir(exist_ok=True)
            (reader.directory / what).write_text(text, "utf-8")
        if (what, text) == ("$", "python make_table.py"):
            assert read_wrong_days(reader.directory) == WRONG
    assert read_wrong_days(reader.directory) == ["2026-06-15"]
    assert reader.typed == [
        "init", "doctor", "adopt", "check", "try", "plan", "approve", "run", "validate", "diff", "publish", "why",
        "rollback",
    ]  # fmt: skip
    ours = java_properties(load_project(reader.directory, environ={}).catalogs["lake"])
    for key, value in reader.builder.settings.items():
        if key.startswith("spark.sql.catalog.lake."):
            assert ours[key.removeprefix("spark.sql.catalog.lake.")].partition("?")[0] == value, key
