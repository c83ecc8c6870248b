"""Show the progress of a run: a bar with rate and ETA on a terminal, otherwise one line per chunk. Writes to stderr."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from errata.ports import hooks
from errata.text.escape import escape_text
from errata.text.numbers import format_clock, format_count


def format_rate(rows: int, seconds: float) -> str:
    """Rows per minute; empty before there are any.

    >>> format_rate(41_000_000, 600), format_rate(0, 10)
    ('4.1 M rows/min', '')
    """
    return f"{format_count(round(rows * 60 / seconds))} rows/min" if rows and seconds > 0 else ""


class _EtaColumn(ProgressColumn):
    """ETA from the average since the start, because chunks finish whole and the last few steps say little."""

    def render(self, task: Task) -> Text:
        done, total, elapsed = task.completed, task.total or 0, task.finished_time or task.elapsed or 0.0
        # chunks finished before, or a pause, say nothing about the speed of the rest
        if task.finished or not done or not task.fields["rows"]:
            return Text(format_clock(elapsed))
        return Text(f"ETA {format_clock(elapsed / done * (total - done))}")


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(format_rate(task.fields["rows"], task.finished_time or task.elapsed or 0.0))


class TerminalProgress:
    """Progress on a terminal: the run, and below it the running chunks."""

    def __init__(self, console: Console, run_id: str, total: int, unit: str) -> None:
        units = unit if unit.endswith("s") else f"{unit}s"
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None, style="dim", complete_style="cyan", finished_style="green"),
            TextColumn(f"{{task.completed:.0f}}/{{task.total:.0f}} {units}"),
            _RateColumn(),
            _EtaColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task(escape_text(run_id), total=total, rows=0)
        self._done: set[str] = set()
        self._rows = 0
        self._prepared: str | None = None
        self._chunks: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._render_page, console=console, refresh_per_second=4, transient=False)
        self._live.start()

    def _render_page(self) -> Group:
        with self._lock:
            chunks = [
                f"  {name}  {text}  {format_clock(time.monotonic() - at)}" for name, (text, at) in self._chunks.items()
            ]
            if self._prepared:
                chunks.insert(0, f"  {self._prepared}")
        return Group(self._bar.get_renderable(), *(Text(escape_text(line)) for line in chunks))

    def prepare(self, text: str | None) -> None:
        """Show what is done before the first chunk; None removes it."""
        with self._lock:
            self._prepared = text
        self._live.refresh()

    def advance(self, partitions: Collection[str], rows: int) -> None:
        """Count an adopted chunk."""
        with self._lock:
            self._done.update(partitions)
            self._rows += rows
            self._bar.update(self._task, completed=len(self._done), rows=self._rows)

    def show(self, chunk_id: str, text: str | None) -> None:
        """Show what a chunk is doing; None removes it."""
        with self._lock:
            if text is None:
                self._chunks.pop(chunk_id, None)
            else:
                started = self._chunks.get(chunk_id, ("", time.monotonic()))[1]
                self._chunks[chunk_id] = (text, started)

    def close(self) -> None:
        """Stop the display."""
        self._live.stop()


class LogProgress:
    """Progress in a log: one line when a chunk changes, one when partitions are done."""

    def __init__(self, say: Callable[[str], None], run_id: str, total: int, unit: str) -> None:
        self._say, self._run, self._total = say, run_id, total
        self._units = unit if unit.endswith("s") else f"{unit}s"
        self._done: set[str] = set()
        self._rows = 0
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def prepare(self, text: str | None) -> None:
        """Do nothing; a log needs no sign of life."""

    def advance(self, partitions: Collection[str], rows: int) -> None:
        """Count an adopted chunk."""
        with self._lock:
            self._done.update(partitions)
            self._rows += rows
            rate = format_rate(self._rows, time.monotonic() - self._started)
            told = [
                f"{self._run}  {len(self._done)}/{self._total} {self._units}",
                f"{format_count(self._rows)} rows" if self._rows else "",
                rate,
            ]
            self._say("  ".join(filter(None, told)))

    def show(self, chunk_id: str, text: str | None) -> None:
        """Log what a chunk is doing; its end shows in the next line."""
        if text is not None:
            self._say(f"{self._run}  {chunk_id}  {text}")

    def close(self) -> None:
        """Do nothing; everything is logged already."""


class TrackedProgress:
    """Progress that also remembers, by name, what is in progress, for the answer to Ctrl-C."""

    def __init__(self, shown: hooks.ProgressListener, under_way: dict[str, str]) -> None:
        self._shown, self._under_way = shown, under_way

    def prepare(self, text: str | None) -> None:
        """Show what is done before the first chunk; None removes it."""
        self._shown.prepare(text)

    def advance(self, partitions: Collection[str], rows: int) -> None:
        """Count an adopted chunk."""
        self._shown.advance(partitions, rows)

    def show(self, chunk_id: str, text: str | None) -> None:
        """Show what a chunk is doing; None removes it."""
        if text is None:
            self._under_way.pop(chunk_id, None)
        else:
            self._under_way[chunk_id] = text
        self._shown.show(chunk_id, text)

    def close(self) -> None:
        """Stop the display."""
        self._under_way.clear()
        self._shown.close()


_tracked: type[hooks.ProgressListener] = TrackedProgress
_bar: type[hooks.ProgressListener] = TerminalProgress
_lines: type[hooks.ProgressListener] = LogProgress
