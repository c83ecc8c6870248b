"""The contract of :class:`errata.ports.consumers.Watermarks`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pytest

from errata.errors import UsageError
from errata.model.consumer.declaration import WatermarkState
from errata.model.consumer.watermark import WatermarkType
from errata.ports.consumers import Watermarks
from errata.testing.consumers import MemoryWatermarks

KEY, OTHER = "bf-1-p1/published/watermark/features", "bf-2-p1/published/watermark/features"


class WatermarkSubject(Protocol):
    """The watermark of one job, in a column of the type date."""

    @property
    def state(self) -> WatermarkState: ...

    @property
    def watermarks(self) -> Watermarks: ...

    def put(self, value: str | None) -> None:
        """Set it, as the job does."""


@dataclass
class MemoryWatermarkSubject:
    """A watermark in memory."""

    state: WatermarkState = field(default_factory=lambda: WatermarkState("pg", "etl_state", {"job": "f"}, "high_water"))
    watermarks: MemoryWatermarks = field(default_factory=MemoryWatermarks)

    def put(self, value: str | None) -> None:
        """See the protocol."""
        self.watermarks.put(self.state, value)


class WatermarkContract:
    """A watermark is moved once for each key, and only from the value that was expected."""

    def test_a_move_is_made_once(self, watermark_subject: WatermarkSubject) -> None:
        """A repeated move changes nothing, even if the job has read on since."""
        job, marks = watermark_subject.state, watermark_subject.watermarks
        watermark_subject.put("2026-01-20")
        assert marks.find_move(job, KEY) is None
        first = marks.move(job, KEY, "2026-01-20", "2026-01-02")
        assert first is not None
        assert (first.old, first.new) == ("2026-01-20", "2026-01-02")
        watermark_subject.put("2026-01-20")
        assert marks.move(job, KEY, "2026-01-20", "2026-01-02") == first
        assert marks.read(job).value == "2026-01-20"
        assert marks.find_move(job, KEY) == first

    def test_another_value_is_left_alone(self, watermark_subject: WatermarkSubject) -> None:
        """Nothing is moved and no key is kept when the job has read on."""
        job, marks = watermark_subject.state, watermark_subject.watermarks
        watermark_subject.put("2026-01-21")
        assert marks.move(job, KEY, "2026-01-20", "2026-01-02") is None
        assert (marks.read(job).value, marks.find_move(job, KEY)) == ("2026-01-21", None)

    def test_a_move_that_changes_nothing_is_remembered(self, watermark_subject: WatermarkSubject) -> None:
        """The job was not that far; when it is, a repetition must not send it back."""
        job, marks = watermark_subject.state, watermark_subject.watermarks
        watermark_subject.put("2026-01-01")
        assert marks.move(job, KEY, "2026-01-01", "2026-01-01") is not None
        watermark_subject.put("2026-01-20")
        again = marks.move(job, KEY, "2026-01-20", "2026-01-02")
        assert again is not None
        assert again.new == "2026-01-01"
        assert marks.read(job).value == "2026-01-20"

    def test_another_key_is_another_move(self, watermark_subject: WatermarkSubject) -> None:
        """A second correction moves the job back again."""
        job, marks = watermark_subject.state, watermark_subject.watermarks
        watermark_subject.put("2026-01-20")
        marks.move(job, KEY, "2026-01-20", "2026-01-02")
        assert marks.move(job, OTHER, "2026-01-02", "2025-12-31") is not None
        assert marks.read(job).value == "2025-12-31"

    def test_a_job_that_has_read_nothing_has_no_value(self, watermark_subject: WatermarkSubject) -> None:
        """NULL is a value like any other to compare with."""
        job, marks = watermark_subject.state, watermark_subject.watermarks
        watermark_subject.put(None)
        assert (marks.read(job).value, marks.read(job).type) == (None, WatermarkType.DATE)
        assert marks.move(job, KEY, None, None) is not None
        assert marks.read(job).value is None

    def test_a_missing_row_is_refused(self, watermark_subject: WatermarkSubject) -> None:
        """A key that finds no row says so."""
        job = watermark_subject.state
        elsewhere = WatermarkState(job.on, job.table, {"job": "nobody"}, job.column)
        watermark_subject.put("2026-01-20")
        with pytest.raises(UsageError, match="expected one row, found none"):
            watermark_subject.watermarks.read(elsewhere)
        with pytest.raises(UsageError, match="expected one row, found none"):
            watermark_subject.watermarks.move(elsewhere, KEY, None, None)


_conforms: type[WatermarkSubject] = MemoryWatermarkSubject
