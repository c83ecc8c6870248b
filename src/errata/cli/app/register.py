"""Register functions as commands, with the shared options and error handling.

``--json``, ``--as``, ``-C`` and ``--yes`` are options of the program and of every command, because people type them in
both places; the later one wins.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from errata import logs, traces
from errata.cli.app.failure import run_guarded
from errata.cli.app.helptext import to_help_text
from errata.cli.app.session import CliEnvironment, Session

P = ParamSpec("P")

Directory = Annotated[
    str | None, typer.Option("-C", metavar="DIR", help="Project directory (default: the current directory).")
]
Person = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Act as this person (default: $ERRATA_USER, then the OS user)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

_SHARED: dict[str, tuple[Any, Any]] = {
    "directory": (Directory, None),
    "person": (Person, None),
    "json_": (Json, False),
    "yes": (Yes, False),
}


def shared_parameters() -> list[inspect.Parameter]:
    """The options that every command takes."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _SHARED.items()
    ]


def set_shared(world: CliEnvironment, directory: str | None, person: str | None, json_: bool, yes: bool) -> None:
    """Store the shared options given here; options given earlier stay unless given again."""
    world.directory = directory or world.directory
    world.person = person or world.person
    world.json = json_ or world.json
    world.yes = yes or world.yes


def command(
    app: typer.Typer, name: str, panel: str | None = None
) -> Callable[[Callable[Concatenate[Session, P], int | None]], Callable[..., int]]:
    """Register a function of a session as a command; it returns its exit code, or None for 0."""

    def register(function: Callable[Concatenate[Session, P], int | None]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(ctx: typer.Context, **given: Any) -> int:
            set_shared(ctx.obj, *(given.pop(key) for key in _SHARED))
            session = Session(ctx.obj)
            ctx.obj.command = ctx.command_path.partition(" ")[2]
            ctx.obj.run = given.get("run") or ""

            def work() -> int | None:
                with traces.span(f"errata {ctx.obj.command}"):
                    return function(session, **given)  # type: ignore[call-arg]

            code = run_guarded(session, work)
            logs.log("command.ended", command=ctx.obj.command, exit_code=code)
            return code

        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        parameters = [context, *own, *shared_parameters()]
        # typer reads both the signature and the annotations
        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del run.__wrapped__
        app.command(name, help=to_help_text(function.__doc__), rich_help_panel=panel)(run)
        return run

    return register
