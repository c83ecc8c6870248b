"""``errata live write``: a program under a lease ends as it would have ended alone."""

from __future__ import annotations

import pytest

from unit.cli.sample_client import errata


@pytest.mark.parametrize("script, code", [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_exit_code_is_the_programs(script: str, code: int):
    """Also one that a signal ended, which is told as shells tell it."""
    assert errata("live", "write", "lake.fin.daily_revenue", "--", "sh", "-c", script).code == code
