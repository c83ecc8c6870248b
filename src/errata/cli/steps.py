"""The next command after each state of a run. Pure."""

from __future__ import annotations

from errata.model.run import RunState
from errata.model.views import StatusView

__all__ = ["after_review", "next_commands"]

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


def after_review(status: StatusView) -> tuple[str, ...]:
    """What a reviewer would type after a diff; a rejected run needs consent or another run."""
    if status.state == S.REJECTED:
        return (
            f'errata validate {status.run_id} --accept CHECK="why it is right"',
            f'errata plan {status.product} … --supersede {status.run_id} --reason "…"',
        )
    return (status.next,) if status.next else ()
