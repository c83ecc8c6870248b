"""Commands for live jobs that write beside corrections: live check, live write."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer

from errata.cli.app.options import Partitions
from errata.cli.app.register import command
from errata.cli.app.session import Session
from errata.cli.render.layout import flow, wrap
from errata.cli.render.throttle import format_partitions
from errata.errors import UsageError
from errata.views import FrozenView

PANEL = "Beside a live pipeline"

Table = Annotated[str, typer.Argument(metavar="TABLE", help="A governed table, or the product it belongs to.")]
Wait = Annotated[str, typer.Option("--wait", metavar="LENGTH", help="So long for a freeze to end: 30s, 10min, 2h.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    live = typer.Typer(help="For live jobs that write while corrections are under way.", rich_markup_mode=None)
    command(live, "check")(live_check)
    command(live, "write")(live_write)
    app.add_typer(live, name="live", rich_help_panel=PANEL)


def live_check(session: Session, table: Table, partitions: Partitions = None, wait: Wait = "0s") -> None:
    """Ask whether a correction freezes these partitions. Exit code 3 when one does.

    Answers for this moment only: a freeze may start right after it. A job that writes asks with `errata live write`, or
    with errata.live.writing from Python.

    Example: errata live check lake.fin.daily_revenue --partitions 2026-03-01 --wait 10min
    """
    with session.client() as client:
        view = client.frozen(table, partitions, wait=wait)
    session.answer(view, lambda width: _render_unfrozen(view, width))


def live_write(
    session: Session,
    table: Table,
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM…", help="What writes, with its arguments.")],
    partitions: Partitions = None,
    wait: Wait = "0s",
    name: Annotated[str | None, typer.Option("--name", metavar="JOB", help="What people see of the job.")] = None,
) -> int:
    """Run a program that writes these partitions, while no correction freezes them.

    Exit code 3 and nothing is started when one does; else the program's own. A correction that starts meanwhile waits
    until the program has ended.

    Example: errata live write lake.fin.daily_revenue --partitions 2026-03-01 -- spark-submit daily.py 2026-03-01
    """
    with session.client() as client, client.writing(
        table, partitions, wait=wait, name=name or program[0], as_=session.person
    ):  # fmt: skip
        return _run_program(program)


def _run_program(program: list[str]) -> int:
    """The exit code of a program; whoever asks this one to end asks that one."""
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
    return code if code >= 0 else 128 - code  # ended by a signal: as shells tell it


def _render_unfrozen(view: FrozenView, width: int) -> list[str]:
    scope = format_partitions(view.grain, view.partitions) if view.partitions else "every partition"
    return [*flow([view.table, scope], width), *wrap("no correction freezes it now", width, "  ")]
