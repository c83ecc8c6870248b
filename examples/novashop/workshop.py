"""What the demo needs: a fresh project directory, and the stream's process."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from examples.finsight.background import Background
from examples.finsight.lake import Lake
from examples.finsight.workshop import DemoError, environment, make_room

import errata
from errata.report.page import render_page

HERE = Path(__file__).resolve().parent
MARKER = ".novashop-demo"
FIRST, SUBTLE, RIGHT = (
    {"PREFETCHES": "true", "VERSION": "1", "WITHIN": "5s"},
    {"PREFETCHES": "false", "VERSION": "2", "WITHIN": "2s"},
    {"PREFETCHES": "false", "VERSION": "3", "WITHIN": "5s"},
)
"""The rule api-nearest in three versions: prefetches are views; clocks agree within two seconds; neither."""


def lay_out(project: Path, uri: str) -> None:
    """A fresh project directory; an earlier demo in it is deleted, anything else is left alone."""
    make_room(project, MARKER)
    settings = (HERE / "errata.yaml").read_text("utf-8").replace("POSTGRES", uri)
    (project / "errata.yaml").write_text(settings, "utf-8")
    for folder in ("products", "transforms"):
        shutil.copytree(HERE / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    release(project, FIRST)
    lake = Lake(project / "lake")
    lake.create()


def release(project: Path, rule: dict[str, str]) -> None:
    """Deploy a version of the rule."""
    text = (HERE / "products" / "events.yaml").read_text("utf-8")
    for word, value in rule.items():
        text = text.replace(word, value)
    (project / "products" / "events.yaml").write_text(text, "utf-8")


class Worker:
    """The service account, in one Python session: the Spark that computed the first run computes the others too."""

    def __init__(self, project: Path, account: str) -> None:
        os.environ.update(environment())
        self.project, self.account = project, account

    def call(self, method: str, *arguments: str, **options: Any) -> Any:
        """Print the call, make it, and print what it says; returns its view, or None if Errata refused."""
        said = [repr(one) for one in arguments] + [f"{name}={value!r}" for name, value in options.items()]
        print(f"\n>>> client.{method}({', '.join([*said, f'as_={self.account!r}'])})")
        # opened for each call, because releases change the project's files
        with errata.open(str(self.project), narrate=lambda line: print(f"  {line}", flush=True)) as client:
            try:
                view = getattr(client, method)(*arguments, as_=self.account, **options)
            except errata.ErrataError as refused:
                print(f"  {type(refused).__name__}: {refused.message}")
                return None
        print(f"  {getattr(view, 'state', 'done')}")
        return view

    def write_report(self, run: str) -> None:
        """The page for the owner of the events, from the same session."""
        print(f"\n>>> render_page(client.report({run!r}))  # report.html")
        with errata.open(str(self.project)) as client:
            (self.project / "report.html").write_text(render_page(client.report(run)), "utf-8")


class Stream(Background):
    """The normaliser, which never stops writing."""

    def __init__(self, project: Path, bootstrap: str) -> None:
        command = [sys.executable, "-m", "examples.novashop.stream", str(project), bootstrap]
        super().__init__("the stream", command, project / "logs" / "stream.log", project / "logs" / "stream.jsonl")

    def read(self) -> list[dict[str, Any]]:
        """The journal so far."""
        return [json.loads(line) for line in self.read_journal()]

    def wait_for(self, batches: int, seconds: float = 240) -> None:
        """Wait until this many more batches are committed."""
        deadline = time.monotonic() + seconds
        first = None
        while True:
            seen = self.read()
            now = seen[-1]["batch"] if seen else -1
            first = now if first is None and seen else first
            if first is not None and now >= max(first, 0) + batches:
                return
            if time.monotonic() > deadline:
                raise DemoError(f"the stream committed no batch in {seconds:.0f} s; see {self.log}")
            time.sleep(0.2)
