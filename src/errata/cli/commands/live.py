"""Commands for live jobs that write beside corrections: live check, live write."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Annotated

import typer

from errata.cli.app.options import Partitions
from errata.cli.app.register import command
from errata.cli.app.session import Session
from errata.cli.render.layout import flow, wrap
from errata.cli.render.throttle import format_partitions
from errata.errors import UsageError

if TYPE_CHECKING:
    from errata.views import FrozenView

PANEL = "Live jobs"

Table = Annotated[str, typer.Argument(metavar="TABLE", help="Governed table or its product.")]
Wait = Annotated[str, typer.Option("--wait", metavar="LENGTH", help="Wait for a freeze to end: 30s, 10min, 2h.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    live = typer.Typer(help="Coordinate live jobs with corrections.", rich_markup_mode=None)
    command(live, "check")(live_check)
    command(live, "write")(live_write)
    app.add_typer(live, name="live", rich_help_panel=PANEL)


def live_check(session: Session, table: Table, partitions: Partitions = None, wait: Wait = "0s") -> None:
    """Check whether a correction freezes these partitions.

    Exit code 3 when one does. The result is true for this moment only: a freeze may start right after it. A job that
    writes uses `errata live write`, or errata.live.writing in Python.

    Example: errata live check lake.fin.daily_revenue --partitions 2026-03-01 --wait 10min
    """
    with session.client() as client:
        view = client.frozen(table, partitions, wait=wait)
    session.answer(view, lambda width: _render_unfrozen(view, width))


def live_write(
    session: Session,
    table: Table,
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM…", help="Program to run, with its arguments.")],
    partitions: Partitions = None,
    wait: Wait = "0s",
    name: Annotated[
        str | None, typer.Option("--name", metavar="JOB", help="Name of the job (default: the program).")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Record what the job reads and writes, for errata stale.")
    ] = False,
) -> int:
    """Run a program that writes partitions, unless they are frozen.

    Returns the program's exit code, or 3 without starting it when a correction freezes the partitions. A correction
    that starts in the meantime waits until the program has ended. With --report, the commits of the program must say
    who made them: snapshot property errata.live, or an application name, equal to --name. A program that fails reports
    nothing.

    Example: errata live write lake.fin.daily_revenue --partitions 2026-03-01 -- spark-submit daily.py 2026-03-01
    """
    try:
        with session.client() as client, client.writing(
            table, partitions, wait=wait, name=name or program[0], report=report, as_=session.person
        ):  # fmt: skip
            _run_program(program)
    except _ProgramFailed as failure:
        if report:
            session.narrate(f"what it read was not recorded: the program failed with exit code {failure.code}")
        return failure.code
    return 0


class _ProgramFailed(Exception):
    """The program ended with this exit code; leaving the lease with an exception keeps its report back."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _run_program(program: list[str]) -> None:
    """Run a program and raise if it fails; a request to end this process also ends the program."""
    try:
        child = subprocess.Popen(program)  # what the person typed, without a shell
    except OSError as error:
        raise UsageError(
            f"{program[0]} was not started: {error.strerror}", state="nothing was written", program=program[0]
        ) from error
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    if code:
        raise _ProgramFailed(code if code > 0 else 128 - code)  # ended by a signal: the shell's convention


def _render_unfrozen(view: FrozenView, width: int) -> list[str]:
    scope = format_partitions(view.grain, view.partitions) if view.partitions else "every partition"
    return [*flow([view.table, scope], width), *wrap("no correction freezes it now", width, "  ")]
