"""Standing approvals in the ledger: uses are counted where runs are sealed, on both databases and by many at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from errata.errors import ApprovalRefused, NotFound
from errata.ledger import Ledger, RunRecord, StandingRecord
from errata.ledger.db.database import Tx
from errata.ledger.store.standing import use_standing
from errata.model.manifest import Chunk
from errata.model.run import RunState
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ANA, BO, TABLE, actions, manifest_bytes, plan

PRODUCT, DAY = "fin.daily_revenue", "2026-01-01"
SCOPE = {"product": PRODUCT, "limit": 2}


def seal(ledger: Ledger, name: str, digest: str) -> RunRecord:
    """A run under a standing approval for two runs a day."""

    def cover(record: StandingRecord, runs: int, partitions: int, _at: str) -> str:
        return "" if runs < record.subject["limit"] else f"{runs} runs and {partitions} partitions are used"

    def approve(tx: Tx, run: RunRecord) -> RunRecord:
        return use_standing(tx, run, digest, ANA, cover)

    run, _ = ledger.runs.record(
        name, manifest_bytes(name), product=PRODUCT, table=TABLE, partitions=[DAY],
        chunks=[Chunk("c0", (DAY,), 1, 1)], parts={}, actor=ANA, cover=approve,
    )  # fmt: skip
    return run


def approved(ledger: Ledger) -> str:
    return ledger.standing.decide(PRODUCT, SCOPE, "bo", "approved", "every night", BO).digest


def test_a_run_under_a_standing_approval_is_sealed_approved_and_counted(ledger: Ledger) -> None:
    """In one transaction, and the log explains every row."""
    digest = approved(ledger)
    assert seal(ledger, "bf-1", digest).state is RunState.APPROVED
    assert actions(ledger, "bf-1") == ["run.planned", "standing.used"]
    found = ledger.standing.find_used("bf-1")
    assert found is not None
    assert [(one.run_id, one.partitions) for one in found.uses] == [("bf-1", 1)]
    assert [(one.person, one.decision, one.note) for one in found.decisions] == [("bo", "approved", "every night")]
    assert ledger.standing.find_used("bf-2") is None
    assert ledger.audit.verify().ok


def test_a_run_beyond_the_limit_is_not_recorded_at_all(ledger: Ledger) -> None:
    """Neither the run nor its manifest; the refusal is audited."""
    digest = approved(ledger)
    for name in ("bf-1", "bf-2"):
        seal(ledger, name, digest)
    with pytest.raises(ApprovalRefused, match="2 runs and 2 partitions are used"):
        seal(ledger, "bf-3", digest)
    with pytest.raises(NotFound):
        ledger.runs.get("bf-3")
    assert actions(ledger, None)[-1] == "refused"
    assert ledger.audit.verify().ok


def test_twenty_at_once_count_each_other(ledger: Ledger) -> None:
    """Exactly as many uses as the limit allows, whoever comes first."""
    digest, start = approved(ledger), threading.Barrier(20)

    def one(n: int) -> bool:
        start.wait(60)
        try:
            seal(ledger, f"bf-{n}", digest)
        except ApprovalRefused:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(one, range(20))) == 2
    assert len(ledger.standing.get(digest).uses) == 2
    assert ledger.audit.verify().ok


def test_a_revocation_is_a_decision_of_its_own(ledger: Ledger) -> None:
    """Rows are only added, oldest first."""
    digest = approved(ledger)
    ledger.standing.decide(PRODUCT, SCOPE, "bo", "revoked", "no more", BO)
    (found,) = ledger.standing.list(PRODUCT)
    assert (found.digest, [one.decision for one in found.decisions]) == (digest, ["approved", "revoked"])
    assert ledger.standing.list("another") == ()


FORGERIES: dict[str, str] = {
    "a decision is changed": "UPDATE standing_decision SET decision = 'approved'",
    "a use is removed": "DELETE FROM standing_use",
    "a use is added to an approved run": "INSERT INTO standing_use (run_id, digest, product, partitions, at, at_ms,"
    " audit_seq) SELECT 'bf-9', digest, product, 1, at, 1, audit_seq FROM standing_use",
}


@pytest.mark.parametrize("statement", FORGERIES.values(), ids=FORGERIES.keys())
def test_the_database_refuses_forged_rows(ledger: Ledger, shell: Shell, statement: str) -> None:
    """Against every writer."""
    seal(ledger, "bf-1", approved(ledger))
    plan(ledger, "bf-9")
    ledger.runs.move("bf-9", RunState.APPROVED, actor=ANA)
    refused(lambda: shell.execute(statement), "standing")
