"""What a standing approval covers, on values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from errata.approval.standing_scope import (
    PlannedRun,
    StandingEvent,
    StandingScope,
    count_decisions,
    explain_uncovered,
    explain_used_up,
)
from errata.model.approval import ApprovalRecord, ApprovalRules, Voters
from errata.model.partition import Grain

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
SCOPE = StandingScope("shop", "fin.daily", "d" * 64, "10d", 2, 3, 4, {"rows": "5%"}, "30d")
RUN = PlannedRun("d" * 64, Grain.DAY, ("2026-01-30", "2026-01-31"), changes={"rows": "5%"})


def test_a_run_inside_every_limit_is_covered() -> None:
    """The end of a partition counts for its age."""
    assert explain_uncovered(SCOPE, RUN, NOW) == ""
    assert explain_uncovered(SCOPE, replace(RUN, partitions=("2026-01-22",)), NOW) == ""


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"product_digest": "e" * 64}, "the product is not the one that was approved"),
        ({"changes": {}}, "does not have the limits of change"),
        ({"changes": {"rows": "50%"}}, "does not have the limits of change"),
        ({"overrides": ("recent",)}, "overrides recent"),
        ({"kind": "repair"}, "of kind repair"),
        ({"locked": frozenset({"2026-01-30"})}, "2026-01-30 is in a closed period"),
        ({"new_partitions": ("2026-01-31",)}, "does not exist yet"),
        ({"partitions": ("2026-01-29", "2026-01-30", "2026-01-31")}, "3 partitions, and a run may have 2"),
        ({"partitions": ("2026-01-21",)}, "2026-01-21 is older than 10d"),
        ({"partitions": ("null",)}, "null is older than 10d"),
    ],
)
def test_a_run_is_covered_only_inside_every_limit(changed: dict[str, object], why: str) -> None:
    """Each by itself is enough to need a person."""
    assert why in explain_uncovered(SCOPE, replace(RUN, **changed), NOW)


def test_the_limits_of_a_day_leave_room_or_not() -> None:
    """Runs and partitions, the new run included."""
    assert explain_used_up(SCOPE, 2, 2, 2) == ""
    assert "3 runs used it" in explain_used_up(SCOPE, 3, 0, 1)
    assert "3 of 4 partitions were used" in explain_used_up(SCOPE, 1, 3, 2)


def decide(person: str, hours_ago: float, digest: str = SCOPE.digest) -> ApprovalRecord:
    at = (NOW - timedelta(hours=hours_ago)).isoformat()
    return ApprovalRecord("", person, "approved", digest, "", at, 1)


def test_only_decisions_after_the_last_event_count() -> None:
    """By people who may approve now, other than the requester, over this very scope, and not too old."""
    voters = Voters(frozenset({"bo", "cy"}))

    def is_met(given: list[ApprovalRecord], events: list[StandingEvent] | None = None, requester: str = "bot") -> bool:
        return count_decisions(
            SCOPE, ApprovalRules(quorum=1, owner=False), voters, given, events or [], requester=requester, now=NOW
        ).is_met

    event = StandingEvent((NOW - timedelta(hours=2)).isoformat(), "rolled back")
    assert is_met([decide("bo", 3)])
    assert not is_met([decide("bo", 3)], [event])
    assert is_met([decide("bo", 1)], [event])
    assert not is_met([decide("bo", 1)], requester="BO")
    assert not is_met([decide("eve", 1)])
    assert not is_met([decide("bo", 1, "f" * 64)])
    assert not is_met([decide("bo", 24 * 31)])
