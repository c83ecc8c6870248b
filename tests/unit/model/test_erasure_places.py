"""What can still show an erased subject, and until when; and how counts of their rows are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.product.erasure import ErasurePin, find_list_problem, format_erased_count, is_hidden
from errata.model.product.erasure_place import (
    HOLDS,
    UNKNOWN,
    HeldState,
    Place,
    describe_deleted_copies,
    describe_state,
    is_over,
)
from errata.model.product.input_policy import CLASSIFICATIONS, is_as_secret, mask_text
from errata.model.refs import base_tag, candidate_branch, pre_tag, run_branch, undo_branch

RUN = "bf-20260214-daily-7f3a21c0"
PUBLICATION = f"{RUN}-p1-3fa9c2"
DAY = 86_400_000


@pytest.mark.parametrize(
    "ref, kind",
    [
        ("main", "live table"),
        (None, "old snapshots"),
        (undo_branch(PUBLICATION), "undo set"),
        (run_branch(RUN), "staged output"),
        (candidate_branch(RUN, 2, "5d41402abc4b2a76"), "candidate"),
        (base_tag(RUN), "tag"),
        (pre_tag(PUBLICATION), "tag"),
        ("audit_2026", "branch or tag"),
    ],
)
def test_every_state_of_a_table_has_a_name_and_a_last_day(ref: str | None, kind: str) -> None:
    """The day is that of the snapshot and the time for which it is kept; main has none."""
    place = describe_state("lake.t", HeldState(ref, 10 * DAY, None if ref == "main" else 3 * DAY))
    assert (place.kind, place.state) == (kind, HOLDS)
    assert place.until == (None if ref == "main" else "1970-01-14")
    assert place.ends


def test_what_snowflake_keeps_ends_by_itself() -> None:
    """Time travel and fail-safe together, after the last delivery; after that day it is not listed."""
    place = describe_deleted_copies("wh:T", datetime(2026, 1, 1, tzinfo=UTC))
    assert place.until == "2026-04-08"
    assert not is_over(place, "2026-04-08")
    assert is_over(place, "2026-04-09")


@pytest.mark.parametrize("place", [Place("tag", "t", HOLDS, "2026-01-01", ""), Place("topic", "t", UNKNOWN, None, "")])
def test_a_place_that_holds_rows_or_has_no_end_is_never_over(place: Place) -> None:
    """A day that has passed is no proof: somebody has to remove the ref."""
    assert not is_over(place, "2030-01-01")


@given(st.integers(0, 10**6))
def test_small_counts_are_not_shown(count: int) -> None:
    """From 1 to 4 they read the same."""
    assert (format_erased_count(count) == "<5") == is_hidden(count) == (1 <= count <= 4)


PIN = ErasurePin("lake.erased", "uuid", "key", "7", 3)


@pytest.mark.parametrize(
    "change, why",
    [
        ({"table_uuid": "other"}, "created again"),
        ({"key_id": "other"}, "another key"),
        ({"sequence": 2}, "set back"),
        ({"sequence": 3}, None),
        ({"sequence": 9, "snapshot_id": "8"}, None),
    ],
)
def test_only_a_list_that_grew_takes_the_place_of_the_planned_one(change: dict[str, Any], why: str | None) -> None:
    """Any other would find fewer subjects, or nobody."""
    from dataclasses import replace

    found = find_list_problem(PIN, replace(PIN, **change))
    assert (found is None) if why is None else (found is not None and why in found)


@given(st.text(), st.sampled_from(["hash", "redact", "last4", "blank"]))
def test_a_mask_shows_at_most_four_characters(text: str, how: str) -> None:
    """Of a text of four or fewer, none."""
    masked = mask_text(text, how, lambda one: f"{len(one)} hidden")
    if how == "last4":
        assert masked is not None
        assert len(masked) == len(text)
        assert masked.endswith(text[-4:]) if len(text) > 4 else set(masked) <= {"*"}
    else:
        assert masked == {"hash": f"{len(text)} hidden", "redact": "***", "blank": None}[how]


@given(st.sampled_from([None, *CLASSIFICATIONS]), st.sampled_from([None, *CLASSIFICATIONS]))
def test_rows_go_only_where_they_are_as_secret(target: str | None, source: str | None) -> None:
    """No classification is the lowest."""
    order = [None, *CLASSIFICATIONS]
    assert is_as_secret(target, source) == (max(order.index(target), 1) >= max(order.index(source), 1))
