"""Rules about recorded files: what the same name or content again is, and which time a file is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.errors import UsageError
from errata.model.partition import Grain
from errata.model.recording.business_range import (
    BusinessRange,
    RangeFinder,
    find_pattern_flaw,
    parse_range,
    read_range_from_name,
)
from errata.model.recording.recorded_file import FileStatus, Inspection, Intake, RecordedFile, decide_intake

DAY = parse_range("2026-01-03", "2026-01-04")
NEXT = parse_range("2026-01-04", "2026-01-05")
SEEN = Inspection("orders", "a.json", "/landing/a.json", 10, "1" * 64, "2026-01-05T00:00:00+00:00", 2, range=DAY)
POLICIES = ("ignored", "reprocessed", "correction", "rejected")


def record(seen: Inspection, intake: Intake, status: FileStatus | None = None) -> RecordedFile:
    return RecordedFile(
        file_id=intake.file_id, source=seen.source, format="json", name=seen.name, path=seen.path, bytes=seen.bytes,
        sha256=seen.sha256, identity=seen.identity, rows=seen.rows, bad_rows=0, range=seen.range, columns={},
        fingerprint="", produced_at=seen.produced_at, seen_at="", attempt=intake.attempt, manifest_id=None,
        first_run=None, status=status or intake.status, why=intake.why, twin=None, supersedes=None, keep_until="",
        place="", content="", content_bytes=0, content_sha256="",
    )  # fmt: skip


FIRST = record(SEEN, decide_intake(SEEN, (), "ignored"))
LATER = replace(SEEN, produced_at="2026-01-06T00:00:00+00:00")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_delivery_is_recorded_once(policy: str):
    """Path, time and content are the same: an import can be repeated, whatever the source says of duplicates."""
    again = decide_intake(SEEN, (FIRST,), policy)
    assert (again.known, again.file_id) == (True, FIRST.file_id)


def test_the_same_content_again_is_what_its_source_says():
    """Ignored, computed again, or rejected; never both counted."""
    found = {policy: decide_intake(LATER, (FIRST,), policy) for policy in POLICIES}
    assert found["ignored"].known
    assert "ignored" in found["ignored"].note
    assert found["rejected"].status is FileStatus.REJECTED
    for policy in ("reprocessed", "correction"):
        assert (found[policy].supersedes, found[policy].attempt) == (FIRST.file_id, 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_content_for_another_day_is_another_file(policy: str):
    """A constant or empty file for each of two days is two files, and the second is marked as a twin."""
    other = decide_intake(replace(SEEN, name="b.json", path="/landing/b.json", range=NEXT), (FIRST,), policy)
    assert (other.status, other.known, other.twin) == (FileStatus.ACCEPTED, False, FIRST.file_id)


def test_a_name_with_other_content_is_never_taken_silently():
    """It replaces the earlier file where that is called a correction, and is rejected by name otherwise."""
    changed = replace(LATER, sha256="2" * 64)
    for policy in ("ignored", "reprocessed", "rejected"):
        found = decide_intake(changed, (FIRST,), policy)
        assert (found.status, found.known) == (FileStatus.REJECTED, False)
        assert FIRST.file_id[:12] in found.why
    assert decide_intake(changed, (FIRST,), "correction").supersedes == FIRST.file_id


@pytest.mark.parametrize("policy", POLICIES)
def test_a_name_that_comes_for_another_time_is_another_file(policy: str):
    """Producers use one name in every directory: a correction of one day never takes another day away."""
    other = replace(SEEN, path="/landing/04/a.json", sha256="2" * 64, range=NEXT)
    found = decide_intake(other, (FIRST,), policy)
    assert (found.status, found.supersedes) == (FileStatus.ACCEPTED, None)


def test_a_correction_of_several_files_at_once_is_rejected():
    """Nobody knows which rows of the other would be missing then."""
    next_day = replace(SEEN, path="/landing/04/a.json", sha256="2" * 64, range=NEXT)
    held = (FIRST, record(next_day, decide_intake(next_day, (FIRST,), "correction")))
    both = replace(SEEN, sha256="3" * 64, range=BusinessRange(DAY.start, NEXT.end))
    found = decide_intake(both, held, "correction")
    assert (found.status, found.supersedes) == (FileStatus.REJECTED, None)
    assert all(one.file_id[:12] in found.why for one in held)


def test_a_file_rejected_before_is_judged_by_the_rule_of_today():
    """Under the old rule it is known; once the source says correction, it is accepted."""
    changed = replace(LATER, sha256="2" * 64)
    refused = record(changed, decide_intake(changed, (FIRST,), "ignored"))
    assert decide_intake(changed, (FIRST, refused), "ignored").known
    assert decide_intake(changed, (FIRST, refused), "correction").status is FileStatus.ACCEPTED


def test_content_that_was_removed_can_be_recorded_again():
    """An expired file is gone, so the same delivery is a new attempt."""
    found = decide_intake(SEEN, (replace(FIRST, status=FileStatus.EXPIRED),), "ignored")
    assert (found.known, found.attempt) == (False, 2)


def test_an_old_version_that_comes_again_replaces_the_newer_one_as_a_correction():
    """Version 1, version 2, version 1 again: the last delivery counts."""
    newer = replace(SEEN, sha256="2" * 64, produced_at="2026-01-06T00:00:00+00:00")
    second = record(newer, decide_intake(newer, (FIRST,), "correction"))
    held = (replace(FIRST, status=FileStatus.SUPERSEDED), second)
    back = decide_intake(replace(SEEN, produced_at="2026-01-07T00:00:00+00:00"), held, "correction")
    assert (back.status, back.supersedes) == (FileStatus.ACCEPTED, second.file_id)


@pytest.mark.parametrize(
    "pattern, name, start, end",
    [
        ("orders_{%Y-%m-%d}*.csv", "orders_2026-02-28-2.csv", "2026-02-28", "2026-03-01"),
        ("{%Y}/{%m}.json", "2026/12.json", "2026-12-01", "2027-01-01"),
        ("e-{%Y%m%d%H}.json.gz", "e-2026010323.json.gz", "2026-01-03T23:00:00Z", "2026-01-04"),
    ],
)
def test_a_name_says_which_time_a_file_is_about(pattern: str, name: str, start: str, end: str):
    """The finest part of the time is the unit."""
    found = read_range_from_name(pattern, name)
    assert found is not None
    assert found.text == f"{start} to {end}"


@pytest.mark.parametrize("name", ["orders_2026-02-30.csv", "orders_26-1-3.csv", "other_2026-01-03.csv"])
def test_a_name_that_is_no_date_says_nothing(name: str):
    """An impossible date is not rounded to another one."""
    assert read_range_from_name("orders_{%Y-%m-%d}*.csv", name) is None


@pytest.mark.parametrize("pattern", ["orders.csv", "{%d}.csv", "{%Y-%d}", "{%Y}{%Y}", "{%M}", "{day}"])
def test_a_pattern_without_a_usable_time_is_refused(pattern: str):
    """Errors are found when the file is read, not when files come."""
    assert find_pattern_flaw(pattern) is not None


def test_a_range_touches_whole_partitions():
    """A range from 23:30 to 00:30 is in two hours and two days."""
    found = BusinessRange("2026-01-03T23:30:00Z", "2026-01-04T00:30:00Z")
    assert found.find_ends(Grain.HOUR) == ("2026-01-03T23", "2026-01-04T00")
    assert found.find_ends(Grain.DAY) == ("2026-01-03", "2026-01-04")


def test_a_range_that_ends_before_it_starts_is_refused():
    """Also one of no length: the end is not included."""
    with pytest.raises(UsageError, match="the end after the start"):
        parse_range("2026-01-03", "2026-01-03")


def test_a_column_gives_the_range_from_its_first_to_its_last_day():
    """Text that is no date is left out, and times are days of UTC."""
    days = RangeFinder()
    for value in ("2026-01-03", None, "soon", "2026-01-04T23:30:00-02:00"):
        days.see(value)
    found = days.build()
    assert found is not None
    assert found.text == "2026-01-03 to 2026-01-06"
