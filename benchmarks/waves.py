"""Waves: what it costs to judge and publish a run part by part, and how soon readers have the first part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.lake import Lake, Shape, make
from benchmarks.report import Goal, cases, goals, heading, note
from benchmarks.rounds import REPS, Ratio, alternate

__all__ = ["main"]


def main(root: Path, *, quick: bool) -> None:
    """1,825 days in 20 waves against one wave, and the first wave against its share of the work."""
    days, rows, waves = (30, 50, 5) if quick else (1825, 40_000, 20)
    lake = make(root / "lake", Shape(days, rows, int(rows / 0.215), waves=waves))
    firsts: list[float] = []
    slowest: list[float] = []

    def in_waves() -> None:
        first, total, longest = _publish_in_waves(lake)
        firsts.append(first / (total / waves))
        slowest.append(longest)

    # otherwise the act that comes first pays for what the JVM compiles
    _publish_in_waves(lake, lake.shape.names[: 2 * -(-days // waves)])
    acts = {"one wave": lake.governed, "waves": in_waves}
    found = alternate(acts, reps=max(1, REPS - 1), warm=0, extra=1)
    counted = len(found.rounds)
    heading(
        f"Waves: {days:,} days × {rows:,} rows in {waves} waves",
        "`run --publish` judges and publishes each wave while it computes the next ones; compared with one candidate, "
        "one verdict and one publication of the same days. The share of a wave is the time of the whole run divided by "
        "the number of waves; the first wave is visible when its publication landed, counted from the start of `run`.",
    )
    cases(found, "one wave", {"one wave": "all days in one wave", "waves": f"{waves} waves"})
    goals(
        Goal("waves ÷ one wave, wall", found.ratio("waves", "one wave"), at_most=1.15),
        Goal("first wave visible ÷ its share of the work", Ratio.of(firsts[-counted:]), at_most=1.3),
    )
    more = (found.seconds("waves").value - found.seconds("one wave").value) / waves
    note(f"A wave takes {more:.1f} s more than its share of one.\n")
    note(
        "Measured separately, Python takes about 0.5 CPU seconds for each wave: its verdict, its publication and their "
        "records. The rest of what waves add is in the JVM."
    )
    note(f"From the last chunk of a wave to readers, the slowest wave: {max(slowest[-counted:]):.1f} s.")
    lake.close()


def _publish_in_waves(lake: Lake, partitions: Sequence[str] | None = None) -> tuple[float, float, float]:
    """Seconds from the start of ``run`` to the first wave and to the last, and the slowest from chunk to readers."""
    planned = lake.plan("bench.waves", partitions)
    lake.last = planned.id
    lake.client.approve(planned.id, digest=planned.digest)
    started = datetime.now(UTC)
    lake.client.run(planned.id, publish=True)
    waves = lake.client.status(planned.id).waves
    visible = [datetime.fromisoformat(wave.visible_at or "") for wave in waves]
    computed = [datetime.fromisoformat(wave.computed_at or "") for wave in waves]
    waited = [(after - before).total_seconds() for before, after in zip(computed, visible, strict=True)]
    return (visible[0] - started).total_seconds(), (visible[-1] - started).total_seconds(), max(waited)
