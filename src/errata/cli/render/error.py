"""Render errors as text: what was refused, the state of the data, the next command. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errata.errors import ErrataError


def render_error(error: ErrataError) -> Iterator[str]:
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


def render_error_view(error: ErrataError, width: int) -> list[str]:
    """The view that an error carries, for stdout: the refused plan, the failed run, the rejected candidate."""
    from errata.cli.render.approval import render_release
    from errata.cli.render.gate import render_validation
    from errata.cli.render.plan import render_plan
    from errata.cli.render.run import render_run
    from errata.views import PlanView, ReleaseView, RunView, ValidateView

    for view in error.fields.values():
        if isinstance(view, PlanView):
            return render_plan(view, width)
        if isinstance(view, RunView):
            return render_run(view, width)
        if isinstance(view, ValidateView):
            return render_validation(view, width)
        if isinstance(view, ReleaseView):
            return render_release(view, width)
    return []
