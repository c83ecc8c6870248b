"""The contract of :class:`errata.ports.tables.TagKeeper`."""

from __future__ import annotations

import time

from errata.ports.tables import TagOutcome
from errata.testing.contracts.subject import HISTORY, NOT_A_SNAPSHOT, THIRD, Subject

HOUR_MS = 3_600_000


class TagContract:
    """Tags keep snapshots alive; every call can be repeated."""

    def test_a_tag_is_created_once_and_keeps_its_snapshot(self, subject: Subject) -> None:
        """After an expiry the tagged snapshot still reads as it was."""
        first = subject.pins.refs(subject.table)["main"]
        outcomes = [_create(subject, first, "kept").outcome for _ in range(2)]
        assert outcomes == ["created", "already"]
        subject.append((THIRD, "live", "1.00"))
        subject.expire()
        assert subject.pins.snapshot_exists(subject.table, first)
        assert subject.read(first) == sorted(HISTORY)

    def test_a_tag_on_another_snapshot_is_not_moved_unless_asked(self, subject: Subject) -> None:
        """``create`` says that it is taken, ``move`` moves it."""
        first = subject.pins.refs(subject.table)["main"]
        _create(subject, first, "kept")
        subject.append((THIRD, "live", "1.00"))
        second = subject.pins.refs(subject.table)["main"]
        refused = _create(subject, second, "kept")
        assert (refused.outcome, bool(refused.warning)) == ("not_pinned", True)
        assert subject.pins.refs(subject.table)["kept"] == first
        moves = [
            subject.pins.move(subject.table, second, "kept", keep_ms=HOUR_MS, now_ms=_now()).outcome for _ in range(2)
        ]
        assert (moves, subject.pins.refs(subject.table)["kept"]) == (["moved", "already"], second)

    def test_a_snapshot_that_is_gone_cannot_be_tagged(self, subject: Subject) -> None:
        """That is a warning, and no tag."""
        assert _create(subject, NOT_A_SNAPSHOT, "kept").outcome == "not_pinned"
        assert not subject.pins.snapshot_exists(subject.table, NOT_A_SNAPSHOT)
        assert "kept" not in subject.pins.refs(subject.table)

    def test_tags_are_removed_once_and_main_stays(self, subject: Subject) -> None:
        """Removing what is not there says so."""
        head = subject.pins.refs(subject.table)["main"]
        _create(subject, head, "one")
        _create(subject, head, "two")
        assert [subject.pins.remove(subject.table, "one").outcome for _ in range(2)] == ["removed", "absent"]
        assert subject.pins.drop(subject.table, ["two", "three"]) == ("two",)
        assert subject.pins.drop(subject.table, ["two", "three"]) == ()
        assert subject.pins.refs(subject.table) == {"main": head}
        assert subject.pins.hidden(subject.table) == ()


def _create(subject: Subject, snapshot_id: str, tag: str) -> TagOutcome:
    return subject.pins.create(subject.table, snapshot_id, tag, keep_ms=HOUR_MS, now_ms=_now())


def _now() -> int:
    return int(time.time() * 1000)
