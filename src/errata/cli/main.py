"""``errata``: parse the command line and run one command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from errata.cli.app.failure import build_usage_error, report_error, run_guarded
from errata.cli.app.helptext import GroupedHelp, to_help_text
from errata.cli.app.interrupt import interrupts_handled
from errata.cli.app.register import Directory, Json, Person, Yes, set_shared
from errata.cli.app.session import CliEnvironment, Session
from errata.cli.commands import compute, consumers, live, look, plan, publish, setup, sources, upkeep

HELP = """Governed corrections of published data: plan, approve, run, validate, publish, roll back.

Results go to stdout (--json for programs), messages to stderr. Every command is safe to repeat.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by a rule, 4 did not pass the gate,
5 conflict with later writes, 7 still owed, 130 interrupted (finished work is recorded).

Example: errata plan fin.daily_revenue --from 2026-01-01 --to 2026-02-15 --reason "FX inverted"
"""


_COLLECT_AFTER = 300_000
"""New objects after which unreachable ones are looked for."""


def build_app() -> typer.Typer:
    """The program with all its commands."""
    app = typer.Typer(
        cls=GroupedHelp,
        help=to_help_text(HELP),
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback(invoke_without_command=True)
    def program(
        ctx: typer.Context,
        directory: Directory = None,
        person: Person = None,
        json_: Json = False,
        yes: Yes = False,
        version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    ) -> None:
        set_shared(ctx.obj, directory, person, json_, yes)
        if version:
            _print_version(ctx.obj)
            raise typer.Exit
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help())
            raise typer.Exit

    for section in (setup, sources, plan, compute, publish, consumers, look, upkeep, live):
        section.register(app)
    return app


def _print_version(world: CliEnvironment) -> None:
    from importlib.metadata import version

    number = version("errata")
    session = Session(world)
    session.answer({"version": number}, lambda _: [f"errata {number}"])


def main(argv: Sequence[str] | None = None, world: CliEnvironment | None = None) -> int:
    """Run one command and return its exit code."""
    # a command is short and most of what it makes lives until its end, so the collector finds little
    gc.set_threshold(_COLLECT_AFTER)
    arguments = tuple(sys.argv[1:] if argv is None else argv)
    world = world or CliEnvironment()
    world.argv = arguments
    with interrupts_handled(arguments, world.under_way):
        return run_guarded(Session(world), lambda: _invoke_program(arguments, world))


def run_program() -> int:
    """Run the command of this process, which ends afterwards, and return its exit code."""
    try:
        return main()
    finally:
        # Python searches all objects for unreachable ones when it ends, a sixth of the time of a look
        gc.freeze()


@cache
def _load_program() -> Any:
    return typer.main.get_command(build_app())


def _invoke_program(arguments: tuple[str, ...], world: CliEnvironment) -> int:
    try:
        done = _load_program().main(args=list(arguments), prog_name="errata", standalone_mode=False, obj=world)
    except Exception as problem:
        # whether click is typer's own copy or the package depends on typer's version; both have this method
        if not hasattr(problem, "format_message"):
            raise
        world.json = world.json or "--json" in arguments
        context = getattr(problem, "ctx", None)
        where = getattr(context, "command_path", None)
        return report_error(Session(world), build_usage_error(problem.format_message(), where))
    return done if isinstance(done, int) else 0


if __name__ == "__main__":
    sys.exit(run_program())
