"""Break-glass: one person decides alone, gives a reason, and an alarm is sent.

It replaces the second person and the quorum, never the gate, the digests or the conflict checks. The decision is
recorded before the alarm is sent. After a crash in between, the next decision on the run, its start or its publication
sends the alarm, so it may be sent twice but is not lost.
"""

from __future__ import annotations

from errata.approval.permissions import require_role
from errata.errors import ErrataError, UsageError
from errata.failpoints import failpoint
from errata.ledger import ApprovalRecord, ReleaseRecord, RunRecord
from errata.model.audit import Actor
from errata.model.product import Role
from errata.views import BreakGlassView
from errata.workspace import Workspace

_RUNG, _FAILED = "alarm.rung", "alarm.failed"


def require_break_glass(workspace: Workspace, actor: Actor, why: str, action: str, run_id: str) -> None:
    """Require a reason and the break-glass role."""
    if not why.strip():
        raise UsageError(f"{action} was refused; expected --break-glass with why it cannot wait for a second person")
    require_role(workspace, actor, (Role.BREAK_GLASS,), action, run_id)


def list_break_glass(workspace: Workspace, run_id: str) -> tuple[BreakGlassView, ...]:
    """Break-glass decisions of this run, oldest first."""
    rows = _list_decisions(workspace, run_id)
    if not rows:
        return ()
    told, unheard = (
        _read_alarm_outcomes(workspace, run_id),
        "not rung yet" if workspace.engines.alarm.is_there else "none",
    )
    return tuple(
        BreakGlassView(row.person, row.break_glass, row.at, _format_action(row), told.get(row.audit_seq, unheard))
        for row in rows
    )


def find_last_break_glass(workspace: Workspace, run_id: str) -> BreakGlassView | None:
    """The latest break-glass decision of this run, if any."""
    found = list_break_glass(workspace, run_id)
    return found[-1] if found else None


def raise_alarm(workspace: Workspace, actor: Actor, run: RunRecord) -> None:
    """Send the alarm for decisions that have none yet; a failed alarm is shown and audited, and undoes nothing."""
    rows = _list_decisions(workspace, run.run_id)
    told = _read_alarm_outcomes(workspace, run.run_id) if rows else {}
    for row in rows:
        if row.audit_seq in told:
            continue
        deed = _format_action(row)
        workspace.narrate(f"! BREAK-GLASS: {row.person} decided alone to {deed} {run.run_id}: {row.break_glass}")
        if not workspace.engines.alarm.is_there:
            workspace.narrate("! no alarm is configured in errata.yaml; tell those who should know")
            workspace.ledger.audit.note(
                run.run_id, actor, _FAILED, {"entry": row.audit_seq, "error": "none is configured"}
            )
            continue
        failpoint("alarm.before_ring")
        try:
            workspace.engines.alarm.send_alarm(
                {
                    "event": "break_glass",
                    "deed": deed,
                    "project": workspace.project.name,
                    "run_id": run.run_id,
                    "product": run.product,
                    "table": run.table,
                    "partitions": list(run.partitions),
                    "manifest_digest": run.manifest_digest,
                    "person": row.person,
                    "os_user": actor.os_user,
                    "host": actor.host,
                    "why": row.break_glass,
                    "at": row.at,
                    "audit_entry": row.audit_seq,
                }
            )
        except ErrataError as error:
            workspace.narrate(f"! the alarm did not work: {error.message}")
            workspace.ledger.audit.note(run.run_id, actor, _FAILED, {"entry": row.audit_seq, "error": error.message})
        else:
            workspace.ledger.audit.note(run.run_id, actor, _RUNG, {"entry": row.audit_seq})


def _list_decisions(workspace: Workspace, run_id: str) -> list[ApprovalRecord | ReleaseRecord]:
    decided: list[ApprovalRecord | ReleaseRecord] = [
        *workspace.ledger.approvals.list(run_id),
        *workspace.ledger.releases.list(run_id),
    ]
    return sorted((row for row in decided if row.break_glass), key=lambda row: row.audit_seq)


def _format_action(row: ApprovalRecord | ReleaseRecord) -> str:
    return "approve" if isinstance(row, ApprovalRecord) else "publish"


def _read_alarm_outcomes(workspace: Workspace, run_id: str) -> dict[int, str]:
    """Alarm outcome by the audit entry of the decision."""
    entries = [entry for entry in workspace.ledger.audit.entries(run_id) if entry.action in (_RUNG, _FAILED)]
    return {e.body["entry"]: "rung" if e.action == _RUNG else f"failed: {e.body['error']}" for e in entries}
