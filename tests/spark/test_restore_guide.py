"""The guide on restoring, as typed: a foreign job spoils a day, and the page's commands put it back."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from support.world import TABLE, World

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/restore-corrupted-data.md"
DAY = "2026-01-02"


def typed() -> list[list[str]]:
    """Every command line of the page, in its order."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line.removeprefix("$ errata ")) for block in blocks for line in block.splitlines()]


@pytest.mark.slow
def test_the_commands_of_the_guide_put_a_spoilt_day_back(make_world: Callable[..., World]) -> None:
    """Each is typed as the page has it; placeholders take what the commands before them answered."""
    world = make_world(days=2)
    world.to("published", reason="first the right numbers")
    right = world.rows()
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'{DAY}'")
    known: dict[str, str] = {}

    def open_here(directory: Any, **options: Any) -> Any:
        return errata.open(str(world.root), spark=world.spark, narrate=world.said.append)

    seen: list[str] = []
    for words in typed():
        out, err = io.StringIO(), io.StringIO()
        # a person types the digest when asked for it on the terminal
        signed = ["--digest", known["DIGEST"]] if "approve" in words else []
        line = ["-C", str(world.root), *[known.get(word, word) for word in words], *signed, "--json"]
        code = main(line, Terminal(open_project=open_here, out=out, err=err, interactive=False))
        assert code == 0, (words, err.getvalue())
        answer, command = (
            json.loads(out.getvalue()),
            next(word for word in words if not word.startswith("-") and word not in ("ana", "bo")),
        )
        seen.append(command)
        if command == "history" and "SNAPSHOT" not in known:
            assert answer["next"].startswith("errata plan fin.sales --partitions 2026-01-02 --restore ")
            known["SNAPSHOT"] = answer["commits"][0]["before"]
        if command == "plan":
            known |= {"RUN": answer["run_id"], "DIGEST": answer["manifest_digest"]}
        if command == "publish":
            assert world.rows() == right
    assert seen == [
        "history", "plan", "plan", "approve", "run", "diff", "publish", "why", "runs", "history", "rollback",
    ]  # fmt: skip
    assert [row for row in world.rows() if row[0] == DAY] == []
