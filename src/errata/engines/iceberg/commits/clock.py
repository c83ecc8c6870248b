"""Detect tables dated ahead of this machine's clock, for which Iceberg refuses every commit.

Iceberg refuses a commit dated more than a minute before the newest entry of the table's logs. A live writer with a
wrong clock leaves such an entry behind, and the only remedy is to wait. Checked before each commit, because Iceberg's
own error names neither the snapshot nor a remedy.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from errata.errors import EngineError
from errata.text.numbers import format_duration

TOLERANCE_MS = 60_000
"""How much older than the table's newest entry a commit may be."""


def commit_wait_ms(newest_ms: int, now_ms: int) -> int:
    """How long Iceberg will refuse commits to a table with this newest entry; 0 if it accepts them now.

    >>> commit_wait_ms(newest_ms=600_000, now_ms=0), commit_wait_ms(newest_ms=30_000, now_ms=0)
    (540000, 0)
    """
    return max(0, newest_ms - TOLERANCE_MS - now_ms)


def build_clock_error(table: str, snapshot_id: str | None, newest_ms: int, now_ms: int) -> EngineError:
    """The error: what is dated ahead, by how much, and how long to wait."""
    what = f"snapshot {snapshot_id}" if snapshot_id else "its newest metadata"
    ahead, until = format_duration((newest_ms - now_ms) / 1000), _format_time(newest_ms - TOLERANCE_MS)
    return EngineError(
        f"{table}: {what} is dated {_format_time(newest_ms)} UTC, {ahead} ahead of this machine's clock, "
        "and Iceberg takes no "
        f"commit before {until} UTC",
        state="nothing was changed",
        hint=f"repeat the same command after {until} UTC; correct the clock of the job that wrote it, or this one",
        table=table,
        snapshot_id=snapshot_id,
        until=until,
    )


def require_clock(table: Any) -> None:
    """Raise ``EngineError`` if a (Java) table is dated ahead and would refuse a commit now."""
    metadata = table.operations().current()
    entries: list[tuple[int, str | None]] = [(int(metadata.lastUpdatedMillis()), None)]
    for log, snapshot in ((metadata.snapshotLog(), True), (metadata.previousFiles(), False)):
        if log.size():
            last = log.get(log.size() - 1)
            entries.append((int(last.timestampMillis()), str(last.snapshotId()) if snapshot else None))
    now_ms = int(time.time() * 1000)
    newest_ms = max(at for at, _ in entries)
    if commit_wait_ms(newest_ms, now_ms):
        # prefer to name a snapshot: it has the same date as the metadata written with it
        snapshot_id = next((found for at, found in entries if found and commit_wait_ms(at, now_ms)), None)
        raise build_clock_error(str(table.name()), snapshot_id, newest_ms, now_ms)


def _format_time(at_ms: int) -> str:
    # rounded up, so that a command repeated at that second is not too early
    return datetime.fromtimestamp(-(-at_ms // 1000), UTC).strftime("%Y-%m-%d %H:%M:%S")
