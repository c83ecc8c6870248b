"""Break-glass: one person decides alone, gives a reason, and an alarm is sent.

It replaces the second person and the quorum, never the gate, the digests or the conflict checks. The alarm is owed in
the transaction that records the decision, and :mod:`errata.delivery.alarms` sends it: it may be sent twice but is not
lost.
"""

from __future__ import annotations

from errata.approval.permissions import require_role
from errata.errors import UsageError
from errata.ledger import ApprovalRecord, ReleaseRecord
from errata.model.audit import Actor
from errata.model.consumer.outbox import BREAK_GLASS, Effect, ItemState, Owed
from errata.model.product import Role
from errata.views import BreakGlassView
from errata.workspace import Workspace

_RUNG, FAILED = "alarm.rung", "alarm.failed"


def require_break_glass(workspace: Workspace, actor: Actor, why: str, action: str, run_id: str) -> None:
    """Require a reason and the break-glass role."""
    if not why.strip():
        raise UsageError(f"{action} was refused; expected --break-glass with why it cannot wait for a second person")
    require_role(workspace, actor, (Role.BREAK_GLASS,), action, run_id)


def list_break_glass(workspace: Workspace, run_id: str) -> tuple[BreakGlassView, ...]:
    """Break-glass decisions of this run, oldest first."""
    rows = list_lone_decisions(workspace, run_id)
    told = read_alarm_outcomes(workspace, run_id) if rows else {}
    unheard = "not rung yet" if rows and workspace.engines.alarm.is_there else "none"
    return tuple(
        BreakGlassView(row.person, row.break_glass, row.at, format_deed(row), told.get(row.audit_seq, unheard))
        for row in rows
    )


def find_last_break_glass(workspace: Workspace, run_id: str) -> BreakGlassView | None:
    """The latest break-glass decision of this run, if any."""
    found = list_break_glass(workspace, run_id)
    return found[-1] if found else None


def owe_alarm(workspace: Workspace, break_glass: str) -> tuple[Owed, ...]:
    """What a decision owes that one person makes alone, for the transaction that records it."""
    return (Owed(Effect.ALARM, BREAK_GLASS),) if break_glass and workspace.engines.alarm.is_there else ()


def list_lone_decisions(workspace: Workspace, run_id: str) -> list[ApprovalRecord | ReleaseRecord]:
    """Decisions that one person made alone, oldest first."""
    decided: list[ApprovalRecord | ReleaseRecord] = [
        *workspace.ledger.approvals.list(run_id),
        *workspace.ledger.releases.list(run_id),
    ]
    return sorted((row for row in decided if row.break_glass), key=lambda row: row.audit_seq)


def format_deed(row: ApprovalRecord | ReleaseRecord) -> str:
    """What was decided."""
    return "approve" if isinstance(row, ApprovalRecord) else "publish"


def read_alarm_outcomes(workspace: Workspace, run_id: str) -> dict[int, str]:
    """What came of the alarm, by the audit entry of the decision; without those that nobody has tried to send."""
    # entries of their own: no alarm was configured, or an earlier version sent it
    entries = [entry for entry in workspace.ledger.audit.entries(run_id) if entry.action in (_RUNG, FAILED)]
    told = {e.body["entry"]: "rung" if e.action == _RUNG else f"failed: {e.body['error']}" for e in entries}
    for item in workspace.ledger.outbox.list(run_id=run_id):
        if item.effect is Effect.ALARM and item.state is ItemState.PAID:
            told[item.payload["entry"]] = "rung"
        elif item.effect is Effect.ALARM and item.last_error:
            waived = ", waived" if item.state is ItemState.WAIVED else ""
            told[item.payload["entry"]] = f"failed: {item.last_error}{waived}"
    return told
