"""The command to run next, by the state of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from errata.model.partition import Grain, format_partition_list
from errata.model.run import RunState

if TYPE_CHECKING:
    from errata.ledger import ChunkCounts, RunRecord
    from errata.views import GroupsView, QuorumView, StatusView

S = RunState


def suggest_commands(state: str, run_id: str, *, digest: str | None = None) -> tuple[str, ...]:
    """Commands that may follow in this state; the first is the usual one."""
    sha = digest or "SHA"
    table: dict[str, tuple[str, ...]] = {
        S.PLANNED: (f"errata approve {run_id} --digest {sha}",),
        S.APPROVED: (f"errata run {run_id}",),
        S.RUNNING: (f"errata run {run_id}",),
        S.PAUSED: (f"errata resume {run_id}",),
        S.FAILED: (f"errata retry {run_id}", f"errata status {run_id}"),
        S.STAGED: (f"errata validate {run_id}",),
        S.REJECTED: (f"errata diff {run_id}",),
        S.VALIDATED: (f"errata diff {run_id}", f"errata publish {run_id}"),
        S.PUBLISHING: (f"errata publish {run_id}",),
        S.PART_PUBLISHED: (f"errata publish {run_id}",),
    }
    return table.get(state, ())


def suggest_after_review(status: StatusView) -> tuple[str, ...]:
    """Commands that may follow a review; a rejected run needs accepted warnings or a new plan."""
    if status.state == S.REJECTED:
        return (
            f'errata validate {status.run_id} --accept CHECK="why it is right"',
            f'errata plan {status.product} … --supersede {status.run_id} --reason "…"',
        )
    return (status.next,) if status.next else ()


def approve_command(run: RunRecord, quorum: QuorumView | None) -> str:
    """The approve command, if the next step needs approvals that are missing or no longer valid; otherwise empty."""
    is_needed = run.state in (S.APPROVED, S.VALIDATED, S.PART_PUBLISHED)
    lacking = quorum is not None and not quorum.met and is_needed
    return f"errata approve {run.run_id} --digest {run.manifest_digest}" if lacking else ""


def resume_command(run: RunRecord, groups: GroupsView | None) -> str:
    """The resume command, if publication by groups was stopped; otherwise empty."""
    return f"errata resume {run.run_id}" if groups is not None and groups.stopped else ""


def conflict_command(run: RunRecord, grain: Grain, unpublished: Sequence[str], written: Collection[str]) -> str:
    """The command for a run into whose unpublished partitions others wrote: publish the rest, or plan those again.

    Empty where nobody wrote, or where the run is not ready to be published.
    """
    blocked = [name for name in unpublished if name in written]
    if not blocked or run.state not in (S.VALIDATED, S.PART_PUBLISHED):
        return ""
    if rest := [name for name in unpublished if name not in written]:
        return f"errata publish {run.run_id} --partitions {format_partition_list(grain, rest)}"
    listed = format_partition_list(grain, blocked)
    return f'errata plan {run.product} --partitions {listed} --supersede {run.run_id} --reason "…"'


def next_command(run: RunRecord, counts: ChunkCounts, last_move: str) -> str:
    """The command to run next; ``last_move`` is the action that led to the current state."""
    again = f'errata plan {run.product} … --supersede {run.run_id} --reason "…"'
    if last_move in _DEAD_END_MOVES or (run.state is S.REJECTED and counts.done < counts.total):
        return again + _DEAD_END_MOVES.get(last_move, "")
    match run.state:
        case S.PLANNED:
            return f"errata approve {run.run_id} --digest {run.manifest_digest}"
        case S.APPROVED | S.RUNNING:
            return f"errata run {run.run_id}"
        case S.PAUSED:
            return f"errata resume {run.run_id}"
        case S.FAILED:
            return f"errata retry {run.run_id} && errata run {run.run_id}"
        case S.STAGED:
            return f"errata validate {run.run_id}"
        case S.REJECTED:
            return f"errata diff {run.run_id}"
        case S.VALIDATED | S.PART_PUBLISHED | S.PUBLISHING:
            return f"errata publish {run.run_id}"
        case S.PUBLISHED:
            return f'errata rollback {run.run_id} [--partitions …] --reason "…"'
        case _:
            return ""


_DEAD_END_MOVES = {"cost.capped": ' --override cost="…"', "determinism.refuted": ""}
"""Moves after which continuing would fail in the same way, with the options that a new plan needs."""
