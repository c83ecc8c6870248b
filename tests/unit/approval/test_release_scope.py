"""What a release is over, and what makes it void."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from errata.approval.release import Releasers, ReleaseScope, SignedWarning, find_void_reason
from errata.model.run import is_clean

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SUBJECT = ReleaseScope("m", 1, "c", 7, "v", (SignedWarning("moved", "f", "known", "bo"),), ("2026-01-01",))
HOLDERS = Releasers(frozenset({"bo", "airflow"}), frozenset({"dana"}), frozenset({"airflow"}), "ana")


def why(subject: ReleaseScope = SUBJECT, holders: Releasers = HOLDERS, *, automatic: bool = False, **row: Any) -> str:
    release = {"subject": SUBJECT.content, "person": "bo", "at": "2026-02-20T00:00:00+00:00", "kind": "release",
               "break_glass": ""}  # fmt: skip
    return find_void_reason(release | row, subject, holders, valid="30d", now=NOW, automatic=automatic)


def test_a_release_of_exactly_this_counts():
    """By a publisher, in time."""
    assert why() == ""


@pytest.mark.parametrize(
    "change, told",
    [
        ({"manifest_digest": "m2"}, "the plan is another one"),
        ({"partitions": ("2026-01-02",)}, "the plan is another one"),
        ({"candidate": 2}, "there is a new candidate"),
        ({"candidate_digest": "c2"}, "there is a new candidate"),
        ({"verdict": 9}, "the candidate was judged again"),
        ({"verdict_digest": "v2"}, "the candidate was judged again"),
        ({"accepted": ()}, "the accepted warnings are others"),
        ({"accepted": (SignedWarning("moved", "f2", "known", "bo"),)}, "the accepted warnings are others"),
        ({"accepted": (SignedWarning("moved", "f", "known", "cy"),)}, "the accepted warnings are others"),
    ],
)
def test_each_part_of_the_subject_is_signed(change: dict[str, Any], told: str):
    """Whatever differs changes the digest, and an older release says what it was."""
    other = replace(SUBJECT, **change)
    assert other.digest != SUBJECT.digest
    assert why(other) == told


def test_it_grows_old():
    """As an approval does."""
    assert why(at="2026-01-01T00:00:00+00:00") == "it is of 2026-01-01 and counts for 30d"


@pytest.mark.parametrize(
    "row, told",
    [
        ({"person": "eve"}, "eve no longer has the role publisher"),
        ({"person": "airflow"}, "airflow is a service account"),
        ({"person": "ANA"}, "ANA is the requester"),
        ({"person": "bo", "break_glass": "now"}, "bo no longer has the role break_glass"),
        ({"person": "dana", "break_glass": "now"}, ""),
    ],
)
def test_whoever_released_must_be_allowed_to_now(row: dict[str, Any], told: str):
    """A person with the role of today, who did not ask for it."""
    assert why(**row) == told
    assert why(holders=replace(HOLDERS, single_user=True), **row) == ""


def test_what_a_clean_gate_released_counts_while_the_product_wants_no_person():
    """And the gate is still clean."""
    assert why(kind="automatic", person="airflow", automatic=True) == ""
    assert "wants a person" in why(kind="automatic", person="airflow")


def test_clean_means_that_nothing_was_found():
    """A warning that someone accepted is a finding."""
    assert is_clean([{"level": "ok"}])
    assert not is_clean([{"level": "ok"}, {"level": "warn", "accepted_by": "bo"}])
