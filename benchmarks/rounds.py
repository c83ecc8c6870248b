"""Alternates the acts that are compared, so that a slow minute of the machine falls on all of them alike.

A round is every act once, in an order that turns round by round. Ratios are taken within a round; a round with a busy
sample is left out when enough quiet ones remain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from benchmarks.clock import Sample, sample

__all__ = ["QUICK", "REPS", "WARM", "Ratio", "Rounds", "alternate"]

QUICK = "BENCH_QUICK" in os.environ
"""Whether each act runs once, to see that it works; what it took then means nothing."""
REPS = 1 if QUICK else int(os.environ.get("BENCH_REPS", "3"))
WARM = 0 if QUICK else 1
"""Rounds before those that count, where a question says nothing else."""
_ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median and what the rounds it comes from spread over."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Ratio:
        """Of the values of several rounds."""
        return cls(median(values), min(values), max(values))


class Rounds:
    """Samples by act and round."""

    def __init__(self) -> None:
        self.rounds: list[dict[str, Sample]] = []

    @property
    def kept(self) -> list[dict[str, Sample]]:
        """The quiet rounds; all of them when fewer than three, or than half, are quiet."""
        quiet = [r for r in self.rounds if not any(s.is_busy for s in r.values())]
        return quiet if len(quiet) >= min(_ENOUGH, (len(self.rounds) + 1) // 2) else self.rounds

    @property
    def busy_rounds(self) -> int:
        """How many of the kept rounds have a busy sample."""
        return sum(any(s.is_busy for s in r.values()) for r in self.kept)

    def of(self, name: str) -> list[Sample]:
        """The kept samples of an act."""
        return [r[name] for r in self.kept]

    def seconds(self, name: str, kind: str = "wall") -> Ratio:
        """Seconds an act took."""
        return Ratio.of([getattr(s, kind) for s in self.of(name)])

    def ratio(self, name: str, base: str, kind: str = "wall", *, times: float = 1.0) -> Ratio:
        """One act over another, round by round; ``times`` scales an act that did only a part."""
        return Ratio.of([getattr(r[name], kind) * times / getattr(r[base], kind) for r in self.kept])

    def more(self, name: str, without: str, base: str, kind: str = "wall") -> Ratio:
        """What one act takes more than another, over a third, round by round."""
        spent = [{act: getattr(r[act], kind) for act in (name, without, base)} for r in self.kept]
        return Ratio.of([(s[name] - s[without]) / s[base] for s in spent])


def alternate(acts: Mapping[str, Callable[[], object]], *, reps: int = REPS, warm: int = 2, extra: int = 2) -> Rounds:
    """Warm rounds first, which do not count; then rounds until ``reps`` are quiet, but at most ``extra`` more."""
    warm, extra = (0, 0) if QUICK else (warm, extra)
    result = Rounds()
    names = list(acts)
    for number in range(warm + reps + extra):
        taken = {name: sample(acts[name]) for name in (names if number % 2 else names[::-1])}
        told = ", ".join(f"{n} {taken[n].wall:.1f}/{taken[n].cpu:.1f}" for n in names)
        others = max(s.others for s in taken.values())
        print(f"round {number}: {told}; neighbours {others:.0%}", file=sys.stderr, flush=True)
        if number >= warm:
            result.rounds.append(taken)
            if sum(not any(s.is_busy for s in r.values()) for r in result.rounds) >= reps:
                break
    return result
