"""Whether the catalog of a target keeps branches and tags, without which nothing can be staged, published or undone."""

from __future__ import annotations

from collections.abc import Iterable

from errata.errors import Refused
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.run import RunState
from errata.ports.tables import TagKeeper, TagOutcome
from errata.workspace import Workspace

_NEEDED = "expected a catalog that keeps branches and tags"
_HINT = "errata doctor --deep shows what the catalog keeps; see docs/guides/catalogs.md"


def find_refs_problem(pins: TagKeeper, table: str) -> str | None:
    """What is wrong with the catalog of this table, as far as reading can tell; None when nothing is."""
    hidden = pins.hidden(table)
    if not hidden:
        return None
    shown = ", ".join(hidden[:3]) + (", …" if len(hidden) > 3 else "")
    return f"the catalog of {table} does not show {shown}, which the table has; {_NEEDED}"


def refuse_hidden_refs(workspace: Workspace, table: str) -> None:
    """Refuse a plan on a table whose catalog hides branches or tags; only reads."""
    if problem := find_refs_problem(workspace.engines.pins, table):
        raise Refused(problem, state="nothing was planned; no table was touched", hint=_HINT, table=table)


def refuse_lost_tags(
    workspace: Workspace, actor: Actor, run: RunRecord, pins: Iterable[TagOutcome], *, is_new: bool
) -> None:
    """Refuse a run whose target's catalog accepted a tag and does not keep it; a new run ends here.

    Inputs are only read: for them the warning is enough, because a snapshot that is gone ends the run by itself.
    """
    lost = next((pin for pin in pins if pin.table == run.table and pin.outcome == "not_kept"), None)
    if lost is None:
        return
    if is_new:
        workspace.ledger.runs.move(
            run.run_id, RunState.CANCELLED, actor=actor, action="refs.not_kept", body={"tag": lost.tag}
        )
    ended = f"; run {run.run_id} is cancelled" if is_new else ""
    raise Refused(f"{lost.warning}; {_NEEDED}", state=f"no data was changed{ended}", hint=_HINT, table=run.table)
