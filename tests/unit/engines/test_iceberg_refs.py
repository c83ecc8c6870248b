"""Retention counts from the snapshot."""

from __future__ import annotations

import time
from types import SimpleNamespace

from errata.engines.iceberg.refs import DAY_MS, age_for


def test_a_ref_on_an_old_snapshot_lives_as_long_as_was_promised() -> None:
    """The age that is set is the wanted time plus the age of the snapshot."""
    made = int(time.time() * 1000) - 100 * DAY_MS
    snapshot = SimpleNamespace(timestampMillis=lambda: made)
    table = SimpleNamespace(snapshot=lambda _id: snapshot)
    assert 130 * DAY_MS <= age_for(table, "1", 30) < 131 * DAY_MS
