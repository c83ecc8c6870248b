"""Wall and CPU of this process and every child it still has, read from ``/proc``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Taken:
    """What one repetition took; ``others`` is the share of the machine that other processes used meanwhile."""

    wall: float
    cpu: float
    others: float


def taken(act: Callable[[], object]) -> Taken:
    """Run and measure."""
    wall, own, whole = time.monotonic(), _own_cpu(), _machine_cpu()
    act()
    wall, own, whole = time.monotonic() - wall, _own_cpu() - own, _machine_cpu() - whole
    cores = os.cpu_count() or 1
    return Taken(wall, own, max(0.0, (whole - own) / (wall * cores)))


def _own_cpu() -> float:
    pids, total = [os.getpid()], 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(fields[n]) for n in (11, 12, 13, 14)) / TICK
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return total


def _machine_cpu() -> float:
    user, nice, system = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4]
    return (int(user) + int(nice) + int(system)) / TICK


def row(name: str, taken_by: list[Taken], base: list[Taken] | None = None) -> str:
    """One line of a Markdown table; with a base, the ratios of the medians."""
    wall, cpu = (median(getattr(t, kind) for t in taken_by) for kind in ("wall", "cpu"))
    worst = max(t.wall for t in taken_by)
    others = max(t.others for t in taken_by)
    ratio = "1.00 | 1.00"
    if base:
        ratio = f"{wall / median(t.wall for t in base):.2f} | {cpu / median(t.cpu for t in base):.2f}"
    return f"| {name} | {wall:.1f} | {worst:.1f} | {cpu:.1f} | {ratio} | {others:.0%} |"


HEAD = "| case | wall s (median) | worst | CPU s | ÷ base, wall | ÷ base, CPU | others |\n|---|---|---|---|---|---|---|"
