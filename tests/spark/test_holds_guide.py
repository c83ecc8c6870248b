"""The guide on holding consumers, as typed: the project file, the commands and what they print, SQL and Python."""

from __future__ import annotations

import io
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from support.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/hold-consumers-and-say-when-ready.md"
PEOPLE = "  di: {roles: [requester], teams: [bi]}\nchannels:\n  finance: {file: messages.jsonl}\n"
RUN = "bf-20260214-daily-revenue-7f3a21c0"
SPAN = "2026-01-13..2026-01-14"


def blocks(language: str) -> list[str]:
    """What the page has in this language, in its order, about the product of these tests."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [text.replace("fin.daily_revenue", "fin.sales") for text in found]


def to_pattern(shown: str, run: str) -> str:
    """What a command prints as the page shows it, at any time and with any snapshot."""
    text = re.escape(shown.replace(RUN, run))
    text = re.sub(r"2026\\-\d\d\\-\d\d\\ \d\d:\d\d(:\d\d)?\\ UTC", r"[-\\d: ]+ UTC", text)
    text = re.sub(r"2026\\-01\\-1\d", r"2026-01-\\d\\d", text)
    return re.sub(r"\d{19}", r"\\d+", text)


@pytest.mark.slow
def test_the_guide_works_as_typed(make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice of seconds instead of minutes; the days and the run are those of the test."""
    consumers, ready = blocks("yaml")
    world = make_world(days=4)
    world.configure("limits:", PEOPLE + consumers.replace("10min", "5s") + ready + "limits:")
    run, days = world.to("validated"), f"{world.days[0]}..{world.days[1]}"

    def open_here(_directory: Any, **_options: Any) -> Any:
        return errata.open(str(world.root), spark=world.spark, narrate=world.said.append)

    def give(line: str) -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        words = [run if word == RUN else days if word == SPAN else word for word in shlex.split(line)[1:]]
        place = ["-C", str(world.root), *words, *(["--yes"] if words[0] == "publish" else [])]
        code = main(place, Terminal(open_project=open_here, out=out, err=err, interactive=False))
        return code, (out.getvalue() + err.getvalue()).replace(f"errata -C {world.root} ", "errata ")

    for shown in blocks("console"):
        line, _, expected = shown.partition("\n")
        code, told = give(line.removeprefix("$ "))
        assert re.search(to_pattern(expected, run), told), f"{line}\n{told}"
        if "publish" in line:
            assert code == 3
            time.sleep(5.5)
        elif " ack " in line:
            assert code == 0
            assert give(f"errata publish {RUN} --as bo --wait")[0] == 0
    assert world.rows() == world.expected()
    each, waiting = (world.sql(text) for text in blocks("sql"))
    assert [(str(row.day), row.state, row.snapshot_id) for row in each] == [
        (day, "ready", world.snapshot()) for day in world.days
    ]
    assert waiting == []
    (script,) = blocks("python")
    monkeypatch.chdir(world.root)
    names: dict[str, Any] = {"spark": world.spark}
    exec(compile(script.replace(SPAN, days), "guide", "exec"), names)  # noqa: S102  it is ours
    assert names["rows"].count() == len(world.expected())
