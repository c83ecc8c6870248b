"""How long recorded files are kept. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from errata.model.duration import to_days
from errata.model.recording.business_range import to_instant


def compute_keep_until(now: str, keep: str) -> str:
    """The instant until which a file is kept at least; a month counts 31 days.

    >>> compute_keep_until("2026-01-31T10:00:00Z", "180d")
    '2026-07-30T10:00:00Z'
    """
    return to_instant(datetime.fromisoformat(now) + timedelta(days=to_days(keep)))
