"""Pay ``alarm``: tell people at once that someone decided alone."""

from __future__ import annotations

from errata.approval.break_glass import FAILED, format_deed, list_lone_decisions, read_alarm_outcomes
from errata.delivery.payment import pay_queues
from errata.errors import SetupError
from errata.failpoints import failpoint
from errata.ledger import OutboxItem, RunRecord
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, Paid
from errata.workspace import Workspace


def raise_alarm(workspace: Workspace, actor: Actor, run: RunRecord) -> None:
    """Send the alarm for decisions on this run that have none yet; one that fails stays owed, and undoes nothing."""
    decisions = list_lone_decisions(workspace, run.run_id)
    if not decisions:
        return
    told, open_items = read_alarm_outcomes(workspace, run.run_id), _list_alarms(workspace, run)
    for row in decisions:
        if row.audit_seq in told:
            continue
        deed = format_deed(row)
        workspace.narrate(f"! BREAK-GLASS: {row.person} decided alone to {deed} {run.run_id}: {row.break_glass}")
        if row.audit_seq not in {item.payload["entry"] for item in open_items}:
            workspace.narrate("! no alarm is configured in errata.yaml; tell those who should know")
            body = {"entry": row.audit_seq, "error": "none is configured"}
            workspace.ledger.audit.note(run.run_id, actor, FAILED, body)
    pay_queues(workspace, actor, lambda: [item.queue for item in _list_alarms(workspace, run)])
    for item in _list_alarms(workspace, run):
        if item.last_error:
            workspace.narrate(f"! the alarm did not work: {item.last_error}; it is tried again: errata deliver")


def ring_alarm(workspace: Workspace, _actor: Actor, item: OutboxItem) -> Paid:
    """Send the alarm of one decision."""
    if not workspace.engines.alarm.is_there:
        raise SetupError("errata.yaml no longer has an alarm")
    run, entry = workspace.ledger.runs.get(item.run_id), item.payload["entry"]
    row = next(one for one in list_lone_decisions(workspace, item.run_id) if one.audit_seq == entry)
    by = next(one.actor for one in workspace.ledger.audit.readable_entries(item.run_id) if one.seq == entry)
    failpoint("alarm.before_ring")
    workspace.engines.alarm.send_alarm(
        {
            "event": item.event,
            "key": item.key,
            "deed": format_deed(row),
            "project": workspace.project.name,
            "run_id": run.run_id,
            "product": run.product,
            "table": run.table,
            "partitions": list(run.partitions),
            "manifest_digest": run.manifest_digest,
            "person": row.person,
            "os_user": by.os_user,
            "host": by.host,
            "why": row.break_glass,
            "at": row.at,
            "audit_entry": entry,
        }
    )
    return Paid()


def _list_alarms(workspace: Workspace, run: RunRecord) -> list[OutboxItem]:
    return [item for item in workspace.ledger.outbox.list_open(run_id=run.run_id) if item.effect is Effect.ALARM]
