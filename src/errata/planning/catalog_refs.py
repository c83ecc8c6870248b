"""Check that the target's catalog keeps branches and tags, which staging, publication and rollback all need."""

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
    """The refs problem of this table's catalog, as far as reading can detect it, or None."""
    hidden = pins.hidden(table)
    if not hidden:
        return None
    shown = ", ".join(hidden[:3]) + (", …" if len(hidden) > 3 else "")
    return f"the catalog of {table} does not show {shown}, which the table has; {_NEEDED}"


def refuse_hidden_refs(workspace: Workspace, table: str) -> None:
    """Refuse a plan on a table whose catalog hides branches or tags; read-only."""
    if problem := find_refs_problem(workspace.engines.pins, table):
        raise Refused(problem, state="nothing was planned; no table was touched", hint=_HINT, table=table)


def refuse_lost_tags(
    workspace: Workspace, actor: Actor, run: RunRecord, pins: Iterable[TagOutcome], *, is_new: bool
) -> None:
    """Refuse a run whose target catalog accepted a tag but did not keep it; cancel the run if it is new.

    Inputs are only read, so a warning is enough for them: a missing snapshot fails the run anyway.
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
