"""Recorded files in the ledger, on both databases: one row per file, never edited, every change with its entry."""

from __future__ import annotations

import pytest

from errata.errors import StateRefused
from errata.ledger import Ledger
from errata.model.recording.recorded_file import FileStatus, Inspection, StoredContent
from errata.model.run import RunState
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ANA, actions, record_file, run_in


def test_a_correction_and_what_it_supersedes_change_together(ledger: Ledger):
    """One entry says both, and the log explains every row."""
    first, second = record_file(ledger), record_file(ledger, content="b")
    assert second.supersedes == first.file_id
    held = {one.file_id: one.status for one in ledger.recordings.list()}
    assert held == {first.file_id: FileStatus.SUPERSEDED, second.file_id: FileStatus.ACCEPTED}
    assert actions(ledger) == ["recording.accepted"] * 2
    assert ledger.audit.verify().ok


def test_a_decision_that_is_out_of_date_is_refused(ledger: Ledger):
    """Another process recorded a file of the same name meanwhile; nothing is recorded, and the refusal is."""
    seen = Inspection("orders", "a.json", "/landing/a.json", 10, "c" * 64, "2026-01-05T00:00:00+00:00", 2)
    intake = ledger.recordings.preview(seen, "ignored")
    record_file(ledger, "a.json", "d")
    with pytest.raises(StateRefused, match="another file of orders came in between"):
        ledger.recordings.record(
            seen, "json", "ignored", intake, StoredContent("p", "p", 10, "c" * 64), "2026-07-01T00:00:00Z", ANA
        )
    assert [one.sha256 for one in ledger.recordings.list()] == ["d" * 64]


def test_the_first_run_with_a_file_is_recorded_once(ledger: Ledger):
    """A second run with the same file changes nothing."""
    run_in(ledger, RunState.APPROVED)
    file_id = record_file(ledger).file_id
    ledger.recordings.note_run("bf-1", [file_id], ANA)
    ledger.recordings.note_run("bf-1", [file_id], ANA)
    assert ledger.recordings.find(file_id).first_run == "bf-1"
    assert actions(ledger).count("recording.planned") == 1
    assert ledger.audit.verify().ok


def test_what_was_removed_stays_on_record(ledger: Ledger):
    """With the time and the policy; a second expiry of the same file changes nothing."""
    file_id = record_file(ledger).file_id
    assert ledger.recordings.expire([file_id], "keep 30d", ANA) == (file_id,)
    assert ledger.recordings.expire([file_id], "keep 30d", ANA) == ()
    held = ledger.recordings.find(file_id)
    assert (held.status, held.why) == (FileStatus.EXPIRED, "keep 30d")
    assert held.expired_at
    assert ledger.audit.verify().ok


@pytest.mark.parametrize(
    "change",
    ["sha256 = 'x'", "place = 'x'", "content_sha256 = 'x'", "range_start = 'x'", "status = 'accepted'", "why = 'x'"],
)
def test_nobody_edits_a_recorded_file(ledger: Ledger, shell: Shell, change: str):
    """Not its identity, nor its status, nor anything without an audit entry."""
    file_id = record_file(ledger).file_id
    ledger.recordings.expire([file_id], "keep 30d", ANA)
    refused(lambda: shell.execute(f"UPDATE recorded_file SET {change} WHERE file_id = '{file_id}'"), "recorded_file")
