"""Wall and CPU of one act: this process, its JVM and every other child, and how busy the neighbours were. Reads /proc.

A neighbour is whatever used the machine and is not in this process tree. More than a tenth of the machine makes a
sample busy: its wall is not to be trusted, its CPU a little more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUSY", "Sample", "load", "sample"]

BUSY = 0.10
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one act took; ``others`` is the share of the machine that neighbours used meanwhile."""

    wall: float
    cpu: float
    others: float

    @property
    def is_busy(self) -> bool:
        """Whether neighbours used too much of the machine."""
        return self.others > BUSY


def sample(act: Callable[[], object]) -> Sample:
    """Run an act and measure it."""
    wall, own, whole = time.monotonic(), _tree_cpu(), _machine_cpu()
    act()
    wall, own, whole = time.monotonic() - wall, _tree_cpu() - own, _machine_cpu() - whole
    return Sample(wall, own, max(0.0, (whole - own) / (wall * (os.cpu_count() or 1))))


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def _tree_cpu() -> float:
    """CPU seconds of this process, of its living descendants, and of the children each of them has waited for."""
    pids, total = [os.getpid()], 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(fields[n]) for n in (11, 12, 13, 14)) / _TICK
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it ended while we looked
    return total


def _machine_cpu() -> float:
    """Everything that was not idle and not waiting for a disk."""
    user, nice, system, _, _, irq, softirq = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]
    return sum(map(int, (user, nice, system, irq, softirq))) / _TICK
