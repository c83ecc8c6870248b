"""Decisions on a run: approvals and refusals of its digest, and accepted warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from errata.canonical import to_plain
from errata.errors import ApprovalRefused, UsageError
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.records import RunRecord, WarningAcceptance
from errata.ledger.schema.definition import approval, warning_acceptance
from errata.ledger.store.base import Refusal, Store, build_record, find_run, move_run
from errata.ledger.store.runs import load_verified_manifest
from errata.model.approval import ApprovalRecord, QuorumStatus
from errata.model.audit import Actor
from errata.model.consumer.outbox import APPROVED, BREAK_GLASS, Owed
from errata.model.run import ACTIVE, FINAL, RunState

QuorumCheck = Callable[[tuple[ApprovalRecord, ...], str], QuorumStatus]
"""Quorum status of these approvals at this instant of the database's clock."""

_DECISIONS = {"approved": "approve", "declined": "decline"}
_UNDER_WAY = ACTIVE - {RunState.PLANNED, RunState.PUBLISHING}


def _count_approvals(given: tuple[ApprovalRecord, ...], _at: str) -> QuorumStatus:
    return QuorumStatus(counted=tuple(dict.fromkeys(one.person for one in given if one.decision == "approved")))


class Decisions(Store):
    """Approvals and accepted warnings."""

    def decide(
        self,
        run_id: str,
        digest: str,
        person: str,
        decision: str,
        note: str,
        actor: Actor,
        *,
        judge: QuorumCheck = _count_approvals,
        break_glass: str = "",
        owes: Sequence[Owed] = (),
    ) -> tuple[RunRecord, bool]:
        """Record a decision on this digest; returns True with the run if the same decision was recorded before.

        The approval that completes the quorum moves the run to approved. ``judge`` computes the quorum inside the
        transaction, so of several people who approve at the same time exactly one moves the run. After that an
        approval is accepted only while the recorded ones no longer meet the quorum. ``owes`` is what follows from it:
        items of the event ``break_glass`` at once, those of ``approved`` when the run becomes approved.
        """
        if decision not in _DECISIONS:
            raise UsageError(f"decision {decision!r} is not known; expected approved or declined")
        action = f"run.{decision}"

        def work(tx: Tx) -> tuple[RunRecord, bool]:
            run = find_run(tx.conn, run_id)
            load_verified_manifest(tx.conn, run)
            if digest != run.manifest_digest:
                raise Refusal(
                    _wrong_digest_error(run, digest, decision), run_id=run_id, action=action, body={"digest": digest}
                )
            known = _load_approvals(tx.conn, run_id)
            before = judge(known, tx.at)
            body = {"person": person, "digest": digest, "note": note}
            if _is_repeated(before, known, person, decision, break_glass):
                # people or teams of the project may have changed, so that the recorded approvals now meet the quorum
                is_enough_now = decision == "approved" and before.is_met and run.state is RunState.PLANNED
                return (move_run(tx, run, RunState.APPROVED, actor, action, body) if is_enough_now else run), True
            # the break-glass entry comes first: the replay of the log takes the reason from it
            if break_glass:
                glass = {"person": person, "why": break_glass, "digest": digest}
                append_entry(tx, actor, "break_glass.approve", run_id, glass)
                body |= {"break_glass": "yes"}
            new = ApprovalRecord(run_id, person, decision, digest, note, tx.at, tx.head_seq + 1, break_glass)
            if decision == "declined":
                moved = move_run(tx, run, RunState.DECLINED, actor, action, body)
            else:
                moved = _record_approval(tx, run, before, judge((*known, new), tx.at), actor, body)
            tx.conn.execute(approval.insert(), to_plain(new))
            told = {"entry": new.audit_seq}
            glass_owes = [replace(one, payload=told) for one in owes if one.event == BREAK_GLASS and break_glass]
            write_owed(tx, moved, f"{run_id}-{tx.head_hash[:8]}", glass_owes, actor)
            if moved.state is RunState.APPROVED and run.state is not RunState.APPROVED:
                write_owed(tx, moved, run_id, [one for one in owes if one.event == APPROVED], actor)
            return moved, False

        return self._write(actor, work)

    def list(self, run_id: str) -> tuple[ApprovalRecord, ...]:
        """Decisions on the run, oldest first."""
        return self._read(lambda conn: _load_approvals(conn, run_id))

    def accept_warning(
        self, run_id: str, check: str, why: str, person: str, actor: Actor, findings: str = ""
    ) -> WarningAcceptance:
        """Record that ``person`` accepts these findings of ``check``. Idempotent."""

        def work(tx: Tx) -> WarningAcceptance:
            run = find_run(tx.conn, run_id)
            for known in _load_warnings(tx.conn, run_id):
                if (known.check, known.why, known.person, known.findings) == (check, why, person, findings):
                    return known
            if run.state in FINAL:
                raise Refusal(_run_ended_error(run), run_id=run_id, action="warning.accepted", body={"check": check})
            body = {"check": check, "why": why, "person": person, "findings": findings}
            entry = append_entry(tx, actor, "warning.accepted", run_id, body)
            row = {
                "run_id": run_id,
                "check_name": check,
                "why": why,
                "person": person,
                "at": tx.at,
                "findings": findings,
            }
            tx.conn.execute(warning_acceptance.insert(), row | {"audit_seq": entry.seq})
            return WarningAcceptance(run_id, check, why, person, tx.at, findings)

        return self._write(actor, work)

    def accepted_warnings(self, run_id: str) -> tuple[WarningAcceptance, ...]:
        """Accepted warnings of the run, oldest first."""
        return self._read(lambda conn: _load_warnings(conn, run_id))


def _is_repeated(
    stands: QuorumStatus, known: tuple[ApprovalRecord, ...], person: str, decision: str, break_glass: str
) -> bool:
    if decision == "declined":
        return any((a.person, a.decision) == (person, decision) for a in known)
    if break_glass:
        return stands.broken_by == person and known[-1].break_glass == break_glass
    return person in stands.counted


def _record_approval(
    tx: Tx, run: RunRecord, before: QuorumStatus, after: QuorumStatus, actor: Actor, body: Mapping[str, str]
) -> RunRecord:
    if run.state in _UNDER_WAY and not before.is_met:
        append_entry(tx, actor, "approval.recorded", run.run_id, {**body, "stand": after.told})
        return run
    if after.is_met or run.state is not RunState.PLANNED:
        return move_run(tx, run, RunState.APPROVED, actor, "run.approved", body)
    if after.is_full:
        raise Refusal(_owner_missing_error(run, after), run_id=run.run_id, action="run.approved", body=body)
    append_entry(tx, actor, "approval.recorded", run.run_id, {**body, "stand": after.told})
    return run


def _owner_missing_error(run: RunRecord, stands: QuorumStatus) -> ApprovalRefused:
    able = " or ".join(stands.may)
    return ApprovalRefused(
        f"the approval of {run.run_id} was refused; expected one by someone of {stands.lacks_owner}, which owns"
        f" {run.product} ({able or 'nobody of it may approve'}), found {', '.join(stands.counted)}",
        state="nothing was changed",
        hint=f"ask {able}" if able else f"give someone of {stands.lacks_owner} the role approver in errata.yaml",
        run_id=run.run_id,
        may=list(stands.may),
    )


def _load_approvals(conn: Connection, run_id: str) -> tuple[ApprovalRecord, ...]:
    rows = conn.execute(select(approval).where(approval.c.run_id == run_id).order_by(approval.c.id))
    return tuple(build_record(ApprovalRecord, row) for row in rows)


def _load_warnings(conn: Connection, run_id: str) -> tuple[WarningAcceptance, ...]:
    table = warning_acceptance
    rows = conn.execute(select(table).where(table.c.run_id == run_id).order_by(table.c.id))
    return tuple(build_record(WarningAcceptance, row) for row in rows)


def _wrong_digest_error(run: RunRecord, digest: str, decision: str) -> ApprovalRefused:
    return ApprovalRefused(
        # without the right digest: the person takes it from the plan
        f"{_DECISIONS[decision]} of {run.run_id} was refused; {digest} is not the digest of its plan",
        state="nothing was changed",
        hint=f"look at the plan: errata show {run.run_id}",
        run_id=run.run_id,
    )


def _run_ended_error(run: RunRecord) -> ApprovalRefused:
    return ApprovalRefused(
        f"accepting a warning was refused for {run.run_id}; expected an active run, found {run.state.value}",
        state="nothing was changed",
        run_id=run.run_id,
    )
