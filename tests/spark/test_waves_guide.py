"""The guide on publishing in waves, as typed: waves, a name, old beside new, and not to wait."""

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
from support.waves import in_waves
from support.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/publish-in-waves.md"


def blocks(language: str) -> list[str]:
    """What the page has in this language, in its order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def product() -> str:
    """The product with the section that the page shows."""
    (section,) = blocks("yaml")
    waves = section.partition("waves:")[2].strip()
    return in_waves(waves.strip("{}"))


@pytest.mark.slow
def test_the_commands_and_queries_of_the_guide_work_as_typed(make_world: Callable[..., World]) -> None:
    """Placeholders take what the commands before them answered; Spark's queries are asked of Spark."""
    world = make_world(days=5, product=product())
    known: dict[str, str] = {}
    states: list[tuple[str, str]] = []

    def open_here(directory: Any, **options: Any) -> Any:
        return errata.open(str(world.root), spark=world.spark, narrate=world.said.append)

    lines = [line for block in blocks("console") for line in block.splitlines()]
    for words in (shlex.split(line.removeprefix("$ errata ")) for line in lines):
        out, err = io.StringIO(), io.StringIO()
        # a person types the digest when asked for it on the terminal
        signed = ["--digest", known["DIGEST"]] if "approve" in words else []
        line = ["-C", str(world.root), *[known.get(word, word) for word in words], *signed, "--json"]
        code = main(line, Terminal(open_project=open_here, out=out, err=err, interactive=False))
        assert code == 0, (words, out.getvalue(), err.getvalue())
        answer = json.loads(out.getvalue())
        command = next(word for word in words if not word.startswith("-") and word not in ("ana", "bo"))
        if command == "plan":
            known |= {"RUN": answer["run_id"], "DIGEST": answer["manifest_digest"]}
        if "--dark" in words:
            _read_what_the_page_reads(world)
            assert world.rows() == world.wrong()
        states.append((command, answer["state"]))
    assert states == [
        ("plan", "planned"), ("approve", "approved"), ("run", "validated"), ("publish", "validated"),
        ("publish", "part_published"), ("status", "part_published"), ("pause", "part_published"),
        ("resume", "part_published"), ("publish", "part_published"), ("publish", "published"),
    ]  # fmt: skip
    assert world.rows() == world.expected()


def _read_what_the_page_reads(world: World) -> None:
    first, second = blocks("sql")
    (named,) = [line for line in first.splitlines() if line.endswith("-- Spark")]
    rows = world.sql(named.partition(";")[0])
    new, old = world.expected(world.days[3:]), world.wrong(world.days[:3])
    assert sorted((str(r.day), r.account, r.gross, r.n) for r in rows) == sorted([*new, *old])
    (change,) = world.sql(second.strip().rstrip(";"))
    assert (change[0], change[1]) == ("changed", len(new))
