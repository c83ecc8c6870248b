"""Sweep: commands that write to a table also remove the branches and tags that finished runs left behind.

A run is finished when it has ended, no worker can still write to its branch, and none of its publications can be rolled
back any more. Whole tables and views are left to ``errata cleanup``. Refs of runs that are not in this ledger are never
touched. Starts no JVM; a table is changed only when there is something to remove, and then in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.refs import GUARD, PREFIX, find_writer, run_branch
from errata.publishing.leftovers import ENDED_STATES, WHOLE_TABLE, can_roll_back, find_removable_refs, retire_fences
from errata.publishing.selection import read_refs
from errata.text.exceptions import first_line
from errata.workspace import Workspace

Leftovers = Mapping[str, Mapping[str, str]]
"""Table → ref → the finished run that owns it."""


def sweep_refs(workspace: Workspace, actor: Actor, table: str) -> None:
    """Remove the refs of finished runs from this table; errors are reported and never fail the command."""
    try:
        leftovers = find_leftovers(workspace, table)
        retire_fences(workspace, actor, {run_id for refs in leftovers.values() for run_id in refs.values()})
        removed: dict[str, list[dict[str, str]]] = {}
        for place, refs in leftovers.items():
            for ref in workspace.engines.pins.drop(place, tuple(refs)):
                removed.setdefault(refs[ref], []).append({"table": place, "ref": ref})
        for run_id, gone in removed.items():
            workspace.ledger.audit.note(run_id, actor, "refs.swept", {"removed": gone})
    except Exception as error:  # noqa: BLE001  housekeeping never fails the command that does it
        workspace.narrate(
            f"refs of finished runs on {table} were not removed: {first_line(error)}; next: errata cleanup"
        )


def find_leftovers(workspace: Workspace, table: str) -> Leftovers:
    """Refs of finished runs that have a ref on this table: here, and on the other tables they read or wrote."""
    present = read_refs(workspace, table) or {}
    own = [ref for ref in present if _is_ours(ref)]
    found: dict[str, dict[str, str]] = {}
    for run in workspace.ledger.runs.list(states=ENDED_STATES) if own else ():
        # most ended runs have no refs left, so the cheap test comes first
        if not any(_belongs_to(ref, run) for ref in own) or can_roll_back(workspace, run):
            continue
        for place, ref in find_removable_refs(workspace, run)[0]:
            if ref != WHOLE_TABLE:
                found.setdefault(place, {})[ref] = run.run_id
    there = {place: present if place == table else read_refs(workspace, place) or {} for place in found}
    kept = {place: {ref: run for ref, run in refs.items() if ref in there[place]} for place, refs in found.items()}
    return {place: refs for place, refs in kept.items() if refs}


def find_unknown_refs(workspace: Workspace, refs: Iterable[str]) -> tuple[str, ...]:
    """Refs with our prefix whose run is not in this ledger: from another ledger, or lost when this one was restored."""
    runs = workspace.ledger.runs.list()
    return tuple(sorted(ref for ref in refs if _is_ours(ref) and not any(_belongs_to(ref, run) for run in runs)))


def find_unknown_runs(workspace: Workspace, table: str) -> tuple[str, ...]:
    """Runs that write to this table and are not in this ledger; other projects may read it, so readers do not count."""
    # the refs before the ledger: a run that is planned meanwhile is recorded before it gets a ref
    unknown = find_unknown_refs(workspace, read_refs(workspace, table) or {})
    return tuple(sorted({run for ref in unknown if (run := find_writer(ref))}))


def _is_ours(ref: str) -> bool:
    return ref.startswith(PREFIX) and ref != GUARD


def _belongs_to(ref: str, run: RunRecord) -> bool:
    """Whether a ref's name starts with the run's id; names of its publications continue with ``-p1`` or ``-r2``."""
    own = run_branch(run.run_id)
    return ref == own or ref.startswith((f"{own}_", f"{own}-"))
