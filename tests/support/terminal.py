"""Types commands against a small governed lake, exactly as a hint or a page spells them."""

from __future__ import annotations

import io
import json
import re
import shlex
from typing import Any

from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from support.memory_world import MemoryWorld
from support.world import World

__all__ = ["answer", "at_terminal", "next_lines", "paste", "text"]


def answer(world: World | MemoryWorld, line: str, person: str) -> Any:
    """What ``errata …`` answers as JSON; it has to end well."""
    code, out, err = _typed(world, [*_words(line, person), "--json"])
    assert code == 0, (line, out, err)
    return json.loads(out)


def text(world: World | MemoryWorld, line: str, person: str = "bo") -> tuple[int, str]:
    """The exit code of ``errata …``, and everything that it says, as one line of words."""
    code, out, err = _typed(world, _words(line, person))
    return code, " ".join((out + err).split())


def next_lines(world: MemoryWorld, line: str) -> list[str]:
    """The commands after ``next:`` on the page of this command."""
    code, out, err = _typed(world, shlex.split(line)[1:])
    assert code == 0, (line, out, err)
    _, found, rest = out.partition("next: ")
    return [one.strip() for one in rest.splitlines()] if found else []


def paste(world: MemoryWorld, line: str) -> tuple[int, str]:
    """Exit code and output of a line of commands, pasted by someone at a terminal who answers each question.

    Nobody is named by the environment. Only reasons are the person's own: they replace what stands in their place.
    Asked for a digest, the person types the beginning of the one on the screen.
    """
    line = _fill(line)
    said = ""
    for command in line.split(" && "):
        program, *words = shlex.split(command)
        assert program == "errata", line
        code, out, err = _typed(world, words, interactive=True)
        said += out + err
        if code:
            return code, said
    return 0, said


def at_terminal(world: MemoryWorld, line: str, reply: str) -> tuple[int, str, str]:
    """Exit code, output and messages of a command whose question is answered with ``reply``."""
    return _typed(world, shlex.split(line)[1:], interactive=True, reply=reply)


def _fill(line: str) -> str:
    """The line with reasons where it has placeholders."""
    for placeholder in ('"…"', '"WHY"'):
        line = line.replace(placeholder, '"because"')
    return line.replace("=why it is right", "=because")


def _words(line: str, person: str) -> list[str]:
    program, *words = shlex.split(_fill(line))
    assert program == "errata", line
    return ["--as", person, *words]


def _typed(
    world: World | MemoryWorld, words: list[str], *, interactive: bool = False, reply: str | None = None
) -> tuple[int, str, str]:
    def open_here(_directory: Any, **_options: Any) -> Any:
        return world.another_client()

    def ask(_question: str) -> str:
        screen = err.getvalue()
        if reply is not None:
            return reply
        if screen.rstrip().endswith("[y/N]"):
            return "y"
        return re.findall(r"^(?:manifest|release) +([0-9a-f]{64})$", screen, re.MULTILINE)[-1][:8]

    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(
        open_project=open_here, out=out, err=err, interactive=interactive, width=100, ask=ask, environ={}
    )
    where = [] if "-C" in words else ["-C", str(world.root)]
    return main([*where, *words], terminal), out.getvalue(), err.getvalue()
