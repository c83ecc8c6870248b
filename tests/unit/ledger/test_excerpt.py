"""The audit as evidence of one run shows it: no gap, its own entries whole, others as links; on both databases."""

from __future__ import annotations

import hashlib
import json

import pytest

from errata.errors import AuditBroken, NotFound
from errata.ledger import Ledger
from errata.model.run import RunState
from unit.ledger.shell import Shell
from unit.ledger.steps import ANA, BO, adopt, bring, judge, must_claim, plan, publish


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def two_runs(ledger: Ledger) -> None:
    """Entries of bf-1 and bf-2 in turns, after one of neither."""
    ledger.audit.note(None, ANA, "note", {"word": "before"})
    plan(ledger, "bf-2")
    plan(ledger)
    ledger.audit.note("bf-2", BO, "note", {"word": "private"})
    bring(ledger, "bf-1", RunState.RUNNING)
    adopt(ledger, must_claim(ledger))
    ledger.audit.note("bf-2", BO, "note", {"word": "private"})
    ledger.audit.note(None, BO, "note", {"word": "of no run"})


def test_a_segment_hashes_from_the_first_entry_to_the_head(ledger: Ledger):
    """Every line gives its hash from what it shows; what other runs say is not shown."""
    two_runs(ledger)
    found = ledger.audit.excerpt("bf-1")
    start, *lines = [json.loads(line) for line in found.text().splitlines()]
    entries = {entry.seq: entry for entry in ledger.audit.entries()}
    first = min(seq for seq, entry in entries.items() if entry.run_id == "bf-1")
    assert (start["first"], start["after"]) == (first, entries[first].previous)
    previous = start["after"]
    for seq, line in enumerate(lines, first):
        assert line["seq"] == seq
        is_own = entries[seq].run_id == "bf-1"
        assert set(line) == ({"seq", "content"} if is_own else {"seq", "run", "content_sha256"})
        run = sha("bf-1") if is_own else line["run"]
        content = sha(line["content"]) if is_own else line["content_sha256"]
        link = {"content": content, "previous": previous, "run": run, "seq": seq}
        previous = sha(json.dumps(link, sort_keys=True, separators=(",", ":")))
        assert previous == entries[seq].hash
    assert (found.seq, found.hash) == ledger.audit.head()[:2] == (max(entries), previous)
    assert b"private" not in found.text()
    assert {line["run"] for line in lines if "run" in line} == {sha("bf-2"), None}


def test_a_segment_of_a_log_that_does_not_link_up_is_refused(ledger: Ledger, shell: Shell):
    """An edited entry is named, also one of another run."""
    two_runs(ledger)
    last = ledger.audit.head()[0]
    shell.drop_rule("audit", "audit_no_update")
    shell.execute(f"UPDATE audit SET at = 'never' WHERE seq = {last - 1}")
    with pytest.raises(AuditBroken, match=f"entry {last - 1} does not"):
        ledger.audit.excerpt("bf-1")
    with pytest.raises(NotFound):
        ledger.audit.excerpt("bf-9")


def test_every_verdict_is_kept_in_order(ledger: Ledger):
    """Judging again adds to what was judged before."""
    plan(ledger)
    bring(ledger, "bf-1", RunState.STAGED)
    ledger.candidates.intend("bf-1", "d" * 64, ANA)
    ledger.candidates.record("bf-1", 1, None, "1", ANA)
    judge(ledger, [{"name": "a", "level": "block"}], passed=False)
    judge(ledger, [{"name": "a", "level": "ok"}], thresholds="u" * 64, passed=True)
    assert [(one.passed, one.thresholds_digest) for one in ledger.candidates.verdicts("bf-1")] == [
        (False, "t" * 64), (True, "u" * 64),
    ]  # fmt: skip
    assert ledger.candidates.verdicts("bf-1")[-1] == ledger.candidates.latest_verdict("bf-1")
    publish(ledger, "bf-1")
    assert len(ledger.candidates.verdicts("bf-1")) == 2
