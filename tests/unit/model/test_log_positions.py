"""Positions in the log of a database: which can be answered exactly, and why others cannot."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.change_log.declaration import CHANGES, HISTORY, ChangeCapture
from errata.model.change_log.log_contents import (
    EndFacts,
    LogFacts,
    LogPartition,
    LogReset,
    LogSpan,
    Sample,
    SnapshotMark,
    SpanFacts,
)
from errata.model.change_log.log_pin import LogState, build_log_pin, build_shape_schemas, find_log_refusals
from errata.model.change_log.log_positions import (
    choose_span,
    find_refusals,
    find_since_refusals,
    find_span_refusals,
    format_position,
    parse_position,
)

CDC = ChangeCapture(("id",), "ends")
WHOLE = SnapshotMark(100, 5, has_first=True, has_last=True)
AGAIN = replace(WHOLE, at=250, known_until=200)
ENDS = EndFacts(count=3, first=150, last=300)
FACTS = LogFacts(ENDS, (WHOLE,), partitions=(LogPartition("t/0", 0, 0, 9, 100, head_is_row=True),), sources=("shop",))
CUT = LogPartition("t/1", 7, 0, 5, head_at=120)


def _refuse(facts: LogFacts, position: int, **asked: object) -> tuple[str, ...]:
    return find_refusals(replace(CDC, at=str(position), **asked), facts)  # type: ignore[arg-type]


def test_a_position_between_a_whole_snapshot_and_the_last_commit_is_answered() -> None:
    """Also that of the snapshot itself, after which nothing may have been committed yet."""
    assert _refuse(FACTS, 150) == ()
    assert _refuse(FACTS, 300) == ()
    assert _refuse(replace(FACTS, ends=EndFacts()), 100) == ()


@pytest.mark.parametrize(
    "facts,position,said",
    [
        (FACTS, 301, "position 301 (0/12D) is after the last commit in the range, 300"),
        (FACTS, 99, "no whole snapshot is in the range at or before position 99"),
        (replace(FACTS, ends=EndFacts()), 150, "is after the last commit in the range, none"),
        (replace(FACTS, ends=replace(ENDS, partitions=2)), 150, "the transaction topic has 2 partitions"),
        (replace(FACTS, sources=("shop", "copy")), 150, "several tables or databases: copy, shop"),
        (replace(FACTS, ends=replace(ENDS, fall=(300, 160))), 150, "commit positions go back from 300"),
        (replace(FACTS, unreadable=Sample(2, "t/0@4")), 150, "2 messages are no change messages, such as t/0@4"),
        (replace(FACTS, keyless=Sample(1, "t/0@4")), 150, "1 messages lack the key"),
        (
            replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=140, last_at=144, kind="incremental"))),
            150,
            "is incremental and has some keys only",
        ),
        (replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=140, has_last=False))), 150, "lacks its last row"),
        (replace(FACTS, snapshots=(replace(WHOLE, has_first=False),)), 150, "lacks its first row"),
        (replace(FACTS, snapshots=(WHOLE, AGAIN)), 230, "is inside the snapshot at 250 (0/FA)"),
        (replace(FACTS, partitions=(CUT,)), 150, "t/1 begins at offset 7"),
        (replace(FACTS, partitions=(replace(CUT, head_at=None),)), 150, "t/1 begins at offset 7"),
        (replace(FACTS, partitions=(replace(CUT, head_at=100, head_is_row=True),)), 150, "t/1 begins at offset 7"),
        (
            replace(FACTS, partitions=(replace(CUT, first_offset=0, missing=3),)),
            150,
            "3 offsets of t/1 have no message",
        ),
        (
            replace(FACTS, ends=replace(ENDS, is_from_start=False)),
            150,
            "the transaction topic begins after position 100",
        ),
        (replace(FACTS, ends=replace(ENDS, missing=1)), 150, "1 offsets of the transaction topic have no message"),
    ],
)
def test_a_position_that_cannot_be_answered_exactly_is_refused(facts: LogFacts, position: int, said: str) -> None:
    """Each reason is named; a wrong table is worse than none."""
    assert any(said in told for told in _refuse(facts, position)), _refuse(facts, position)


def test_what_retention_took_from_before_the_snapshot_is_not_missed() -> None:
    """A partition whose first change counts from before the snapshot has everything since."""
    facts = replace(
        FACTS,
        snapshots=(AGAIN,),
        partitions=(CUT, replace(CUT, head_at=250)),
        ends=replace(ENDS, is_from_start=False),
    )
    assert _refuse(facts, 300) == ()


def test_a_new_snapshot_leaves_earlier_commits_answerable() -> None:
    """Up to the last commit that was sent before it, and from the snapshot on."""
    facts = replace(FACTS, snapshots=(WHOLE, AGAIN))
    assert _refuse(facts, 200) == ()
    assert _refuse(facts, 250) == ()


def test_an_unfinished_snapshot_before_a_whole_one_does_no_harm_to_a_state() -> None:
    """The whole one resets every key; a history would have a hole there, and is refused."""
    facts = replace(FACTS, snapshots=(WHOLE, replace(WHOLE, at=140, has_last=False), replace(AGAIN, known_until=150)))
    assert _refuse(facts, 300) == ()
    assert any("lacks its last row" in one for one in _refuse(facts, 300, reading=HISTORY))


def test_a_state_begins_with_the_newest_whole_snapshot_and_changes_with_the_oldest() -> None:
    """Both end at the position that was asked for, or at the newest that is known."""
    facts = replace(FACTS, snapshots=(WHOLE, AGAIN), truncates=(LogReset(200, 190, 0, "truncate"),))
    assert choose_span(CDC, facts) == LogSpan(250, 300)
    span = choose_span(replace(CDC, reading=CHANGES), facts)
    assert span is not None
    assert (span.base, span.position, [one.at for one in span.resets]) == (100, 300, [200, 250])
    assert choose_span(CDC, facts, since=(150, 200)) == LogSpan(150, 300, span.resets)
    assert choose_span(replace(CDC, starts_empty=True), replace(FACTS, snapshots=())) == LogSpan(0, 300)


def test_an_instant_is_the_position_before_the_first_later_commit() -> None:
    """Without a later commit more may follow, and the plan is refused."""
    asked = replace(CDC, at="2026-01-01T00:00:00Z")
    known = choose_span(asked, replace(FACTS, first_after=200))
    assert known is not None
    assert known.position == 199
    assert "no later commit than 2026-01-01T00:00:00Z" in find_refusals(asked, FACTS)[0]
    assert parse_position(asked.at) == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_connector_that_started_again_without_a_snapshot_is_noticed() -> None:
    """A snapshot of an empty table leaves no message; rows from before would stay for ever."""
    held = SpanFacts(stale_before={280: 200})
    assert "started again" in find_span_refusals(FACTS, held, ("id",))[0]
    assert find_span_refusals(replace(FACTS, snapshots=(WHOLE, AGAIN)), held, ("id",)) == ()


@pytest.mark.parametrize(
    "held,said",
    [
        (
            SpanFacts(short=Sample(1, "7 (2 of 3)")),
            "1 transactions have fewer changes in the range than their END counts",
        ),
        (SpanFacts(unavailable=("note",)), "some messages lack the value of note"),
        (SpanFacts(blind=Sample(4, "t/0@3")), "4 changes do not tell in which partition the row was before"),
    ],
)
def test_content_that_is_not_exact_is_refused(held: SpanFacts, said: str) -> None:
    """Fewer changes than were committed, values that are not there, partitions that are not known."""
    assert said in find_span_refusals(FACTS, held, ("id",))[0]


def test_changes_since_a_run_are_not_enough_after_a_truncate() -> None:
    """Nor after a new snapshot; nor does the log go back."""
    span = LogSpan(150, 300, (LogReset(200, 190, 0, "truncate"), LogReset(250, 250, 0, "snapshot")))
    assert len(find_since_refusals(span, {"2026-01-01": 150})) == 2
    assert find_since_refusals(span, {"2026-01-01": 250}) == ()
    assert "is before 400" in find_since_refusals(span, {"2026-01-01": 400})[0]


def test_what_is_sealed_is_what_was_chosen() -> None:
    """With the transactions that are left out, by name."""
    span = LogSpan(100, 300, (LogReset(200, 190, 7, "truncate"),))
    held = SpanFacts(open=Sample(2, "7"), open_names=("7", "9"), shapes=(("id",), ("id", "note")))
    state = LogState(FACTS, span, held, since={"2026-01-01": 150})
    pin = build_log_pin(CDC, "orders_transactions", state)
    assert pin is not None
    assert (pin.span, pin.since, pin.left_out, pin.left_out_names) == (span, {"2026-01-01": "150"}, 2, ("7", "9"))
    assert build_log_pin(CDC, "x", LogState(FACTS)) is None
    assert find_log_refusals(CDC, replace(state, since={})) == ()
    shapes = build_shape_schemas(replace(CDC, reading=CHANGES), {"id": "long", "note": "string"}, held)
    assert [set(one) & {"note", "before_note"} for one in shapes] == [set(), {"note", "before_note"}]


@given(st.integers(0, 2**63 - 1))
def test_both_ways_to_write_a_position_mean_the_same(position: int) -> None:
    """A number, and PostgreSQL's two hexadecimal halves."""
    number, _, halves = format_position(position).partition(" (")
    assert parse_position(number) == parse_position(halves.rstrip(")")) == position


@pytest.mark.parametrize("text", ["now", "2026-01-01T00:00:00", "0/", "-1", "0/123456789"])
def test_anything_else_is_no_position(text: str) -> None:
    """An instant needs its zone."""
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_position(text)
