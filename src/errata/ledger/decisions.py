"""What people decide about a run: approval or no of its digest, and warnings that they take responsibility for."""

from __future__ import annotations

from sqlalchemy import Connection, select

from errata.errors import ApprovalRefused, UsageError
from errata.ledger.audit import append
from errata.ledger.database import Tx
from errata.ledger.records import ApprovalRecord, RunRecord, WarningAcceptance
from errata.ledger.runs import checked_manifest
from errata.ledger.schema import approval, warning_acceptance
from errata.ledger.store import Refusal, Store, find_run, move_run
from errata.model.audit import Actor
from errata.model.run import FINAL, RunState

__all__ = ["Decisions"]

_DECISIONS = {"approved": RunState.APPROVED, "declined": RunState.DECLINED}


class Decisions(Store):
    """Approvals and accepted warnings."""

    def decide(
        self, run_id: str, digest: str, person: str, decision: str, note: str, actor: Actor
    ) -> tuple[RunRecord, bool]:
        """Record a decision over this digest and move the run; the same decision again changes nothing (``True``)."""
        if decision not in _DECISIONS:
            raise UsageError(f"decision {decision!r} is not known; expected approved or declined")
        action = f"run.{decision}"

        def work(tx: Tx) -> tuple[RunRecord, bool]:
            run = find_run(tx.conn, run_id)
            checked_manifest(tx.conn, run)
            if digest != run.manifest_digest:
                raise Refusal(_other_digest(run, digest), run_id=run_id, action=action, body={"digest": digest})
            if any((a.person, a.decision) == (person, decision) for a in _approvals(tx.conn, run_id)):
                return run, True
            body = {"person": person, "digest": digest, "note": note}
            moved = move_run(tx, run, _DECISIONS[decision], actor, action, body)
            row = {"run_id": run_id, "decision": decision, "at": tx.at, "audit_seq": moved.audit_seq} | body
            tx.conn.execute(approval.insert(), row)
            return moved, False

        return self._write(actor, work)

    def approvals(self, run_id: str) -> tuple[ApprovalRecord, ...]:
        """Decisions over the run, oldest first."""
        return self._read(lambda conn: _approvals(conn, run_id))

    def accept_warning(
        self, run_id: str, check: str, why: str, person: str, actor: Actor, findings: str = ""
    ) -> WarningAcceptance:
        """Record that ``person`` accepts these findings of ``check``; repeated, it changes nothing."""

        def work(tx: Tx) -> WarningAcceptance:
            run = find_run(tx.conn, run_id)
            for known in _warnings(tx.conn, run_id):
                if (known.check, known.why, known.person, known.findings) == (check, why, person, findings):
                    return known
            if run.state in FINAL:
                raise Refusal(_too_late(run), run_id=run_id, action="warning.accepted", body={"check": check})
            body = {"check": check, "why": why, "person": person, "findings": findings}
            entry = append(tx, actor, "warning.accepted", run_id, body)
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

    def acceptances_of_warnings(self, run_id: str) -> tuple[WarningAcceptance, ...]:
        """Accepted warnings of the run, oldest first."""
        return self._read(lambda conn: _warnings(conn, run_id))


def _approvals(conn: Connection, run_id: str) -> tuple[ApprovalRecord, ...]:
    rows = conn.execute(select(approval).where(approval.c.run_id == run_id).order_by(approval.c.id))
    return tuple(
        ApprovalRecord(row.run_id, row.person, row.decision, row.digest, row.note, row.at, row.audit_seq)
        for row in rows
    )


def _warnings(conn: Connection, run_id: str) -> tuple[WarningAcceptance, ...]:
    table = warning_acceptance
    rows = conn.execute(select(table).where(table.c.run_id == run_id).order_by(table.c.id))
    return tuple(
        WarningAcceptance(row.run_id, row.check_name, row.why, row.person, row.at, row.findings) for row in rows
    )


def _other_digest(run: RunRecord, digest: str) -> ApprovalRefused:
    return ApprovalRefused(
        f"the decision on {run.run_id} was refused; expected digest {run.manifest_digest}, found {digest}",
        state="nothing was changed",
        hint=f"errata show {run.run_id} shows the digest to decide on",
        run_id=run.run_id,
    )


def _too_late(run: RunRecord) -> ApprovalRefused:
    return ApprovalRefused(
        f"accepting a warning was refused for {run.run_id}; expected a run under way, found {run.state.value}",
        state="nothing was changed",
        run_id=run.run_id,
    )
