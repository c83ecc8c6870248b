from __future__ import annotations

from errata.engines.iceberg.commits.clock import TOLERANCE_MS, build_clock_error, commit_wait_ms


def test_commits_are_refused_from_just_over_a_minute_ahead():
    """Iceberg forgives exactly a minute; the wait ends when the table is no more than that ahead."""
    assert commit_wait_ms(1_000 + TOLERANCE_MS, 1_000) == 0
    assert commit_wait_ms(1_001 + TOLERANCE_MS, 1_000) == 1
    now = 1_000
    assert commit_wait_ms(700_000, now + commit_wait_ms(700_000, now)) == 0


def test_the_refusal_says_what_is_ahead_by_how_much_and_until_when():
    """What happened, the state of the data, and the command that goes on."""
    error = build_clock_error("lake.fin.t", "42", 1_767_226_200_000, 1_767_225_600_500)
    assert error.message == (
        "lake.fin.t: snapshot 42 is dated 2026-01-01 00:10:00 UTC, 10 m 00 s ahead of this machine's clock, and "
        "Iceberg takes no commit before 2026-01-01 00:09:00 UTC"
    )
    assert error.state == "nothing was changed"
    assert error.hint.startswith("repeat the same command after 2026-01-01 00:09:00 UTC")
    assert "its newest metadata is dated" in build_clock_error("lake.fin.t", None, 1_767_226_200_000, 0).message
