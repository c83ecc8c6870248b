"""A command as data, and as shell text. Pure.

A reference ``${NAME}`` to a variable of the project is not expanded in the text: the shell that runs the command fills
it in, so the text contains no secret and can be stored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from errata.submit.job import PinnedJar


class Placeholders:
    """Collects the placeholders in a command, each with its meaning."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def fill(self, given: str | None, name: str, meaning: str) -> str:
        """The given value, or the placeholder ``<name>``, which is then recorded."""
        if given:
            return given
        self.found[f"<{name}>"] = meaning
        return f"<{name}>"


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``lines`` are its words, grouped into lines of text."""

    target: str
    run_id: str
    lines: tuple[tuple[str, ...], ...]
    workers: int
    waits: bool  # whether it runs until the worker ends
    blanks: tuple[tuple[str, str], ...]
    variables: tuple[str, ...]
    jars: tuple[PinnedJar, ...]
    notes: tuple[str, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """All words of the command, to start it as a process."""
        return tuple(word for line in self.lines for word in line)


def quoted(word: str, variables: Sequence[str] = ()) -> str:
    """Quote one word for a POSIX shell, leaving references to the variables open.

    >>> quoted("a b"), quoted("k=${PW}", ["PW"]), quoted("k=${HOME}", ["PW"])
    ("'a b'", 'k="${PW}"', "'k=${HOME}'")
    """
    names = "|".join(map(re.escape, variables))
    pieces = re.split(rf"(\$\{{(?:{names})\}})", word) if names else [word]
    known = {f"${{{name}}}" for name in variables}
    return "".join(f'"{piece}"' if piece in known else shlex.quote(piece) for piece in pieces if piece) or "''"


def render_script(command: Command) -> list[str]:
    """The command as lines of a shell script, with placeholders, jars and notes as comments."""
    several = command.workers > 1
    lines = [f"for worker in $(seq {command.workers}); do"] if several else []
    lines += _render_command(command, " &" if several and command.waits else "")
    if several:
        lines += ["done", *(["wait"] if command.waits else [])]
    if command.blanks:
        lines += ["", "# fill in", *_render_comments(command.blanks)]
    lines += [
        "",
        "# jars, as the run manifest pins them",
        *_render_comments([(jar.sha256, jar.name) for jar in command.jars]),
    ]
    if command.notes:
        lines += ["", "# notes", *(f"#   {note}" for note in command.notes)]
    return lines


def _render_command(command: Command, end: str) -> list[str]:
    texts = [" ".join(quoted(word, command.variables) for word in line) for line in command.lines]
    text = " \\\n".join([texts[0], *(f"  {later}" for later in texts[1:])])
    return (text + end).split("\n")


def _render_comments(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(first) for first, _ in rows), default=0)
    return [f"#   {first.ljust(width)}  {second}" for first, second in rows]
