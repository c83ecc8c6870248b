"""Send lineage at the end of a command, when the work on the data is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from errata.errors import ErrataError

if TYPE_CHECKING:
    from errata.model.audit import Actor
    from errata.workspace import Workspace

_SECONDS = 5.0
"""How long sending may take; an event that was started is finished."""


@contextmanager
def sending_lineage(workspace: Workspace, actor: Actor, run_id: str) -> Iterator[None]:
    """Send the lineage of the run's table when the work inside is over, also if it was refused.

    What cannot be sent stays owed and changes nothing about the outcome.
    """
    try:
        yield
    except Exception:
        _send_owed(workspace, actor, run_id)
        raise
    _send_owed(workspace, actor, run_id)


def _send_owed(workspace: Workspace, actor: Actor, run_id: str) -> None:
    from errata.delivery.payment import pay_lineage  # most commands pay nothing

    if workspace.project.lineage is None:
        return
    try:
        run = workspace.ledger.runs.get(run_id)
        warnings = pay_lineage(workspace, actor, run.table, _SECONDS).warnings
    except ErrataError as error:
        warnings = [f"lineage is still owed: {error.message}"]
    for warning in warnings:
        workspace.narrate(f"WARNING: {warning}")
