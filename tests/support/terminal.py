"""Types commands against a small governed lake, exactly as a hint or a page spells them."""

from __future__ import annotations

import io
import json
import shlex
from typing import Any

from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from support.memory_world import MemoryWorld
from support.world import World

__all__ = ["answer", "text"]


def answer(world: World | MemoryWorld, line: str, person: str) -> Any:
    """What ``errata …`` answers as JSON; it has to end well."""
    code, out, err = _typed(world, [*_words(line, person), "--json"])
    assert code == 0, (line, out, err)
    return json.loads(out)


def text(world: World | MemoryWorld, line: str, person: str = "bo") -> tuple[int, str]:
    """The exit code of ``errata …``, and everything that it says, as one line of words."""
    code, out, err = _typed(world, _words(line, person))
    return code, " ".join((out + err).split())


def _words(line: str, person: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "errata", line
    return ["--as", person, *words]


def _typed(world: World | MemoryWorld, words: list[str]) -> tuple[int, str, str]:
    def open_here(_directory: Any, **_options: Any) -> Any:
        return world.another_client()

    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(open_project=open_here, out=out, err=err, interactive=False, width=100)
    return main(["-C", str(world.root), *words], terminal), out.getvalue(), err.getvalue()
