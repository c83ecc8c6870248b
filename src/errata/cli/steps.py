"""The next command after each state of a run. Pure."""

from __future__ import annotations

from errata.model.run import RunState

__all__ = ["next_commands"]

S = RunState


def next_commands(state: str, run_id: str, *, digest: str | None = None) -> tuple[str, ...]:
    """What a person would type next; the first is the usual one."""
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
