"""One invocation: person, project directory, output format and streams. Uses stdout, stderr, stdin and the terminal."""

from __future__ import annotations

import getpass
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from errata import logs
from errata.canonical import to_plain
from errata.cli.render.layout import render_next
from errata.errors import ErrataError
from errata.text.escape import escape_json, escape_text

if TYPE_CHECKING:
    from rich.console import Console

    from errata.client import Client
    from errata.ports.hooks import ProgressListener

MAX_WIDTH = 110
_COMMAND = re.compile(r"(?<![\w/.-])errata (?=[a-z]+(?: |$))")
_COPYABLE = ("next:", "hint:", "errata ", "undo until", "or ", "then ")


@dataclass(slots=True)
class CliEnvironment:
    """Everything outside the command line; tests pass their own."""

    open_project: Callable[..., Any] | None = None
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    ask: Callable[[str], str] = input
    interactive: bool | None = None
    argv: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    width: int | None = None
    directory: str | None = None
    person: str | None = None
    json: bool = False
    yes: bool = False
    command: str = ""  # its words, without arguments
    run: str = ""  # that it is about, as it was typed
    under_way: dict[str, str] = field(default_factory=dict)  # what the command works on now, by name

    def __post_init__(self) -> None:
        for stream in (self.out, self.err):
            if hasattr(stream, "reconfigure"):
                # a terminal without Unicode shows ? instead of failing the command
                stream.reconfigure(errors="replace")


class Session:
    """One running command."""

    def __init__(self, world: CliEnvironment) -> None:
        self.world = world
        self.json = world.json
        self.yes = world.yes
        self.client_log: str | None = None
        self.redact: Callable[[str], str] = str
        self._complete: Callable[[str], str] = str  # while the project is open

    @cached_property
    def out(self) -> Console:
        """Text on stdout."""
        return _build_console(self.world.out, self.world)

    @cached_property
    def err(self) -> Console:
        """Text on stderr."""
        return _build_console(self.world.err, self.world)

    @cached_property
    def person(self) -> str:
        """The acting person: ``--as``, then ``ERRATA_USER``, then the operating-system user."""
        return self.world.person or self.world.environ.get("ERRATA_USER") or getpass.getuser()

    @property
    def directory(self) -> Path:
        """The project directory."""
        return Path(self.world.directory or ".")

    @property
    def width(self) -> int:
        """Width of the output."""
        return min(self.out.width, MAX_WIDTH)

    @property
    def asks(self) -> bool:
        """Whether the command can and should ask a person."""
        if self.json or self.yes:
            return False
        if self.world.interactive is not None:
            return self.world.interactive
        return sys.stdin.isatty() and self.err.is_terminal

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Open the project; closes it however the command ends."""
        opener = self.world.open_project or _open_client
        client = opener(self.directory, narrate=self.narrate, progress=self.progress)
        if self.world.run and logs.is_on() and hasattr(client, "log_about"):
            client.log_about(self.world.run)
        logs.log("command.started", command=self.world.command)
        log = getattr(client, "log", None)
        self.client_log = str(log) if isinstance(log, (str, Path)) else None
        self.redact = getattr(client, "redact", str)
        if hasattr(client, "complete_commands"):
            self._complete = partial(client.complete_commands, as_=self.person)
        try:
            yield client
        except ErrataError as error:
            error.hint = error.hint and self._complete(error.hint)
            raise
        finally:
            self._complete = str
            close = getattr(client, "close", None)
            if close is not None:
                close()

    def narrate(self, text: str) -> None:
        """Print a message about the progress of the command."""
        first, *more = text.splitlines() or [""]
        # further lines are indented, so that none can pass for a line of Errata's own
        for line in (first, *(f"  {line}" for line in more)):
            self.err.print(escape_text(line), style=self._choose_style(text), soft_wrap=True)

    def tell(self, line: str) -> None:
        """Print one line on stderr."""
        self.err.print(escape_text(line), soft_wrap=True)

    def _choose_style(self, text: str) -> str | None:
        if not self.err.is_terminal:
            return None
        return "errata.bad" if text.startswith("! BREAK-GLASS") else "errata.dim"

    def progress(self, run_id: str, total: int, unit: str) -> ProgressListener:
        """A progress listener: a bar on a terminal, otherwise one line per chunk."""
        from errata.cli.app.progress import LogProgress, TerminalProgress, TrackedProgress

        shown: ProgressListener = LogProgress(self.narrate, run_id, total, unit)
        if not self.json and self.err.is_terminal:
            shown = TerminalProgress(self.err, run_id, total, unit)
        return TrackedProgress(shown, self.world.under_way)

    @contextmanager
    def show_spinner(self, text: str) -> Iterator[None]:
        """Show a spinner on a terminal during a long call."""
        if self.json or not self.err.is_terminal:
            yield
            return
        from rich.text import Text

        with self.err.status(Text(escape_text(text)), spinner="dots"):
            yield

    def answer(self, data: Any, lines: Callable[[int], Iterable[str]]) -> None:
        """Print the result, as text or JSON."""
        if self.json:
            self.write_json(data)
        else:
            self.page(lines(self.width))

    def answer_about(self, client: Client, view: Any, lines: Callable[[int], Iterable[str]]) -> None:
        """Print the result of a command about a run; the text ends with the run's next command."""
        if self.json:
            self.write_json(view)
            return
        text = [*lines(self.width)]
        # the result first: it stays on the screen even if the ledger cannot be read again
        self.page(text)
        upcoming = client.next_steps(view.run_id, as_=self.person)
        self.page(render_next(*(command for command in upcoming if not any(command in line for line in text))))

    def page(self, lines: Iterable[str]) -> None:
        """Print lines of text on stdout."""
        for line in lines:
            self.out.print(escape_text(self.localize_command(line)), soft_wrap=True)

    def write_json(self, data: Any) -> None:
        """Write one JSON document to stdout."""
        self.world.out.write(to_json_text(data) + "\n")
        self.world.out.flush()

    def ask(self, lines: Iterable[str], question: str) -> str:
        """Show lines, ask, and return what the person types; empty at the end of the input."""
        for line in lines:
            self.tell(self.localize_command(line))
        self.err.print(f"\n{escape_text(question)} ", end="", soft_wrap=True)
        try:
            return self.world.ask("").strip()
        except EOFError:
            return ""

    def confirm(self, lines: Iterable[str], question: str) -> bool:
        """Show what will change and ask, default no; returns True without asking if no one can be asked."""
        if not self.asks:
            return True
        agreed = self.ask(lines, f"{question} [y/N]").lower() in ("y", "yes")
        if not agreed:
            self.err.print("nothing was changed")
        return agreed

    def localize_command(self, line: str) -> str:
        """Adapt a command for copying: a person who may type it, and the ``-C`` that this command was given."""
        if not line.lstrip().startswith(_COPYABLE):
            return line
        line, where = self._complete(line), self.world.directory
        if not where:
            return line
        import shlex

        return _COMMAND.sub(f"errata -C {shlex.quote(where)} ".replace("\\", r"\\"), line)


def to_json_text(data: Any) -> str:
    """A view as JSON text; values that JSON cannot hold (dates, decimals) become text."""
    return escape_json(json.dumps(to_plain(data), indent=2, ensure_ascii=False, default=str))


def _open_client(*arguments: Any, **named: Any) -> Any:
    # imported here because it loads Iceberg and the ledger, which `errata --help` does not need
    import errata

    return errata.open(*arguments, **named)


def _build_console(stream: TextIO, world: CliEnvironment) -> Console:
    # imported here because `errata --help` and JSON need no console
    from errata.cli.app.console import build_console

    return build_console(stream, world.width, world.environ)
