"""Holds: what a publication may do about one, at every moment and under every term."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.consumer.declaration import Consumer, Hold
from errata.model.consumer.hold import (
    WAITS,
    HoldRecord,
    HoldState,
    Outlook,
    build_held_error,
    find_hold,
    judge_hold,
    list_held,
)

H, Do = HoldState, Outlook
OPENED = datetime(2026, 5, 1, tzinfo=UTC)
MS = int(OPENED.timestamp() * 1000)
MINUTE = 60_000
OPEN = HoldRecord(
    "bf-1-h1-aa", "bf-1", 1, "dashboard", "lake.t", ("2026-01-01",), "7", acknowledge=False, on_timeout="stop",
    opened_at=OPENED.isoformat(), notice_until=MS + 10 * MINUTE, until=MS + 120 * MINUTE, state=H.OPEN,
    acknowledged_by=None, acknowledged_at=None, skipped_by=None, ended_at=None, audit_seq=1,
)  # fmt: skip
HOLDS = st.builds(
    lambda acknowledge, on_timeout, state, skipped: replace(
        OPEN, acknowledge=acknowledge, on_timeout=on_timeout, state=state, skipped_by=skipped
    ),
    st.booleans(),
    st.sampled_from(["go", "stop"]),
    st.sampled_from(HoldState),
    st.sampled_from([None, "bo"]),
)


@pytest.mark.parametrize("minute, acknowledge, on_timeout, state, expected", [
    (5, False, "stop", H.OPEN, Do.NOTICE),
    (5, True, "stop", H.ACKNOWLEDGED, Do.NOTICE),  # notice is given in full, also to who is ready
    (15, False, "stop", H.OPEN, Do.GO),
    (15, True, "stop", H.OPEN, Do.ACKNOWLEDGEMENT),
    (15, True, "go", H.OPEN, Do.ACKNOWLEDGEMENT),
    (15, True, "stop", H.ACKNOWLEDGED, Do.GO),
    (121, True, "stop", H.OPEN, Do.STOP),
    (121, True, "go", H.OPEN, Do.GO),
    (121, True, "stop", H.ACKNOWLEDGED, Do.OVER),  # it continued after at_most
    (121, False, "stop", H.OPEN, Do.OVER),
    (121, False, "go", H.OPEN, Do.GO),
    (121, True, "stop", H.EXPIRED, Do.OVER),  # said before: a new hold may be opened
    (241, True, "go", H.EXPIRED, Do.OVER),
    (15, False, "go", H.ENDED, Do.OVER),
])  # fmt: skip
def test_every_term_has_one_answer(
    minute: int,
    acknowledge: bool,
    on_timeout: str,
    state: HoldState,
    expected: Outlook,
):
    """By time, acknowledgement and what was declared."""
    hold = replace(OPEN, acknowledge=acknowledge, on_timeout=on_timeout, state=state)
    assert judge_hold(hold, MS + minute * MINUTE) is expected


@given(hold=HOLDS, minute=st.integers(0, 600))
def test_a_hold_that_was_ended_or_is_long_over_lets_nothing_through(hold: HoldRecord, minute: int):
    """Twice its length after it was opened, or once it was ended, a publication needs a new one."""
    outlook = judge_hold(hold, MS + minute * MINUTE)
    if hold.state is H.ENDED or minute >= 240:
        assert outlook in (Do.OVER, Do.STOP)


@given(hold=HOLDS, minute=st.integers(0, 600))
def test_without_a_person_nothing_goes_before_the_notice_is_over(hold: HoldRecord, minute: int):
    """And without an acknowledgement, where one is needed, not before at_most, and then only by declaration."""
    if judge_hold(hold, MS + minute * MINUTE) is not Do.GO or hold.skipped_by is not None:
        return
    assert minute >= 10
    if hold.acknowledge and hold.state is not H.ACKNOWLEDGED:
        assert hold.on_timeout == "go"
        assert minute >= 120


@given(hold=HOLDS, minute=st.integers(0, 600))
def test_a_wait_always_ends(hold: HoldRecord, minute: int):
    """What a publication waits for lies before the end of the hold."""
    if judge_hold(hold, MS + minute * MINUTE) in WAITS:
        assert MS + minute * MINUTE < hold.until
        assert judge_hold(hold, hold.until) not in WAITS


def test_the_newest_hold_that_covers_the_partitions_counts():
    """An older one is of an earlier attempt."""
    newer = replace(OPEN, hold_id="bf-1-h2-bb")
    other = replace(OPEN, hold_id="bf-1-h3-cc", partitions=("2026-01-02",))
    assert find_hold([OPEN, newer, other], "dashboard", ["2026-01-01"], "lake.t") == newer
    assert find_hold([OPEN], "dashboard", ["2026-01-01", "2026-01-02"], "lake.t") is None
    assert find_hold([OPEN], "stream", ["2026-01-01"], "lake.t") is None
    assert find_hold([OPEN], "dashboard", ["2026-01-01"], "lake.other") is None


def test_only_consumers_with_a_hold_are_held():
    """In order of their names."""
    consumers = [
        Consumer("b", ("p",), hold=Hold("go")),
        Consumer("c", ("p",)),
        Consumer("a", ("p",), hold=Hold("stop")),
    ]
    assert [name for name, _ in list_held(consumers)] == ["a", "b"]


def test_the_refusal_says_who_is_waited_for_until_when_and_what_to_type():
    """The last wait decides; owners get their command."""
    asked = replace(OPEN, acknowledge=True, on_timeout="go")
    told = build_held_error("bf-1", [("dashboard", asked, Do.ACKNOWLEDGEMENT), ("x", OPEN, Do.NOTICE)], MS)
    assert told.message == (
        "publish of bf-1 was refused; dashboard has not acknowledged its hold, which lasts until 2026-05-01 02:00:00 "
        "UTC; x has notice until 2026-05-01 00:10:00 UTC"
    )
    assert told.hint == (
        "errata ack bf-1 dashboard\nor errata publish bf-1 --wait\n"
        "or after 2026-05-01 02:00:00 UTC: errata publish bf-1"
    )
    assert (told.fields["seconds_left"], told.fields["holds"]) == (7200, ["bf-1-h1-aa"] * 2)
    both = build_held_error("bf-1", [("dashboard", replace(asked, on_timeout="stop"), Do.NOTICE)], MS)
    assert both.message.endswith(
        "dashboard has notice until 2026-05-01 00:10:00 UTC, and has not acknowledged its hold, which lasts until "
        "2026-05-01 02:00:00 UTC"
    )
    assert both.hint == "errata ack bf-1 dashboard\nor errata publish bf-1 --wait", "later it would be refused"
    stopped = build_held_error("bf-1", [("dashboard", asked, Do.STOP)], MS)
    assert stopped.hint == "errata publish bf-1 holds them again"
