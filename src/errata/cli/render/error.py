"""Errors as text: what was refused, the state of the data, the next command. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.cli.render.approval import release_lines
from errata.cli.render.gate import validation_lines
from errata.cli.render.plan import plan_lines
from errata.cli.render.run import run_lines
from errata.errors import ErrataError
from errata.views import PlanView, ReleaseView, RunView, ValidateView


def error_lines(error: ErrataError) -> Iterator[str]:
    """The lines for stderr."""
    first, *more = error.message.splitlines() or [""]
    yield f"error[{error.code}]: {first}"
    for line in more:
        yield line if line.startswith(" ") or not line else f"  {line}"
    if error.state:
        yield error.state
    if error.hint:
        yield ""
        head, *rest = error.hint.splitlines()
        yield f"hint: {head}"
        yield from (f"      {line.strip()}" for line in rest)


def page_of(error: ErrataError, width: int) -> list[str]:
    """The view that an error carries, for stdout: the refused plan, the failed run, the rejected candidate."""
    for view in error.fields.values():
        if isinstance(view, PlanView):
            return _without_next(plan_lines(view, width))
        if isinstance(view, RunView):
            return _without_next(run_lines(view, width))
        if isinstance(view, ValidateView):
            return _without_next(validation_lines(view, width))
        if isinstance(view, ReleaseView):
            return _without_next(release_lines(view, width))
    return []


def _without_next(lines: list[str]) -> list[str]:
    """The error's own hint says what to do next."""
    ends = next((n for n, line in enumerate(lines) if line.startswith("next:")), len(lines))
    while ends and not lines[ends - 1]:
        ends -= 1
    return lines[:ends]
