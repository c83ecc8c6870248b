"""Tables of a campaign: whether readers could see a part of its correction."""

from __future__ import annotations

from datetime import datetime

import pytest

from errata.model.consumer.readiness import Claim, ReadyState, judge_readiness
from errata.model.consumer.table_set import SetMember, is_incomplete, join_tables

A, B, C = SetMember("a", ()), SetMember("b", ("a",)), SetMember("c", ("b",))


def change(one: SetMember, **fields: bool) -> SetMember:
    """The same member, further."""
    return SetMember(one.product, one.after, **fields)


@pytest.mark.parametrize(
    "members, expected",
    [
        ([A, B, C], False),  # nothing is out
        ([change(A, has_begun=True), B, C], True),
        ([change(A, is_out=True), B, C], True),
        ([change(A, is_out=True), change(B, is_out=True), C], True),
        ([change(A, is_out=True), change(B, is_out=True), change(C, is_out=True)], False),
        ([change(A, is_out=True), change(B, has_ended=True), C], False),  # nor does what reads it come
        ([change(A, is_out=True), change(B, is_out=True), change(C, has_ended=True)], False),
        ([change(A, has_ended=True), B, C], False),
        ([change(A, is_out=True), B, change(C, has_ended=True)], True),
        ([change(A, has_begun=True, has_ended=True), B], False),  # some waves are out, and no more come
    ],
)
def test_a_campaign_is_incomplete_while_something_is_out_and_something_may_come(
    members: list[SetMember], expected: bool
) -> None:
    """What was given up does not come, nor what reads it."""
    assert is_incomplete(members) is expected


def test_tables_are_joined_through_others() -> None:
    """Rows about them are written in one commit, so that none is ahead of the others."""
    groups = {"ca-1": {"a", "b"}, "ca-2": {"c", "b"}, "ca-3": {"d", "e"}}
    assert join_tables(groups, ["a"]) == ("a", "b", "c")
    assert join_tables(groups, ["a", "x"]) == ("a", "b", "c", "x")
    assert join_tables({}, ["x"]) == ("x",)


def test_the_snapshot_of_a_set_is_named_whatever_else_has_a_claim() -> None:
    """A later wave of the member was based on a snapshot with the first one in it."""
    day, at = ("2026-01-01",), "2026-05-01T10:00:00+00:00"
    later = "2026-05-01T11:00:00+00:00"
    claims = [
        Claim(ReadyState.HELD, "ca-1", day, at, "7", is_shared=True),
        Claim(ReadyState.PUBLISHING, "bf-1", day, later, "8"),
        Claim(ReadyState.SETTLING, "bf-1", day, later, "8"),
    ]
    (found,) = judge_readiness(claims, (), datetime.fromisoformat(later)).values()
    assert (found.state, found.run_id, found.snapshot_id) == (ReadyState.PUBLISHING, "bf-1", "7")
