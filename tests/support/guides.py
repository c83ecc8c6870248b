"""A reader of a guide, who saves its files and types its commands, in the order of the page."""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark.sql
import pytest
from pyspark.sql import SparkSession

import errata
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main

GUIDES = Path(__file__).resolve().parents[2] / "docs/guides"
_INSTALLING = ("make setup", "source .venv/bin/activate")


def list_steps(page: str) -> Iterator[tuple[str, str]]:
    """Every file to save, as its path and text, and every line to type, as ``$`` and the line.

    A block that names no file in its first line is only shown.
    """
    text = (GUIDES / page).read_text("utf-8")
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        first = body.splitlines()[0].lstrip("#- ")
        if language == "console":
            yield from (("$", line.removeprefix("$ ")) for line in body.splitlines())
        elif re.fullmatch(r"[\w/]+\.(py|sql|yaml)", first):
            yield first, body


class Builder:
    """A Spark session of the shared application with the settings that a script gives to its own."""

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


class GuideReader:
    """Has one directory and types one line after the other; ``after`` is called with each command that was typed."""

    def __init__(
        self, directory: Path, spark: SparkSession, base: SparkSession, after: Callable[[str], None] = lambda _: None
    ) -> None:
        self.directory, self.spark, self.base, self.after = directory, spark, base, after
        self.builder = Builder(spark)
        self.known: dict[str, str] = {}
        self.typed: list[str] = []

    def follow(self, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The whole page; SQL outside a directory is run in a session, as the page says."""
        for what, text in list_steps(page):
            if what == "$":
                self._type(text, monkeypatch)
            elif re.fullmatch(r"\w+\.sql", what):
                self.spark.sql(text).collect()
                self.after(what)
            else:
                (self.directory / what).parent.mkdir(exist_ok=True)
                (self.directory / what).write_text(text, "utf-8")

    def _type(self, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """One line; placeholders take what `plan` answered."""
        program, *words = shlex.split(line)
        if line in _INSTALLING:
            return
        if program == "cd":
            self.directory /= words[0]
            return
        if program == "python":
            with monkeypatch.context() as patch:
                patch.setattr(pyspark.sql.SparkSession, "builder", self.builder)
                runpy.run_path(str(self.directory / words[0]))
        else:
            assert program == "errata", line
            self._errata(words)
            self.typed.append(words[0])
        self.after(words[0])

    def _errata(self, words: list[str]) -> None:
        def open_here(directory: Any, **_: Any) -> Any:
            return errata.open(str(directory), spark=self.base, narrate=lambda _: None)

        out, err = io.StringIO(), io.StringIO()
        line = ["-C", str(self.directory), *[self.known.get(word, word) for word in words], "--json"]
        code = main(line, Terminal(open_project=open_here, out=out, err=err, interactive=False))
        assert code == 0, (words, out.getvalue(), err.getvalue())
        answer = json.loads(out.getvalue())
        if words[0] == "plan":
            self.known = {"RUN": answer["run_id"], "SHA": answer["manifest_digest"]}
