"""Samples and goals as Markdown. Prints; decides only whether a goal is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rounds import Ratio, Rounds

__all__ = ["Goal", "cases", "goals", "heading", "lines", "note"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What must hold of a number: ``at_most`` or ``at_least`` a limit."""

    name: str
    found: Ratio
    at_most: float | None = None
    at_least: float | None = None
    digits: int = 2
    why: str = ""  # shown if it is not reached

    @property
    def reached(self) -> bool:
        """Whether it does; judged on the median, as printed."""
        value = round(self.found.value, self.digits)
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


def heading(title: str, text: str) -> None:
    """A question and how it is answered."""
    print(f"\n## {title}\n\n{text}\n")


def note(text: str) -> None:
    """A paragraph."""
    print(f"\n{text}")


def cases(found: Rounds, base: str | None = None, names: Mapping[str, str] | None = None) -> None:
    """Every act: seconds with their spread, and ratios to the base."""
    print("| | wall s | CPU s | ÷ base, wall | ÷ base, CPU | neighbours |\n|---|---|---|---|---|---|")
    for name in found.rounds[0]:
        wall, cpu = (_spread(found.seconds(name, kind), 1) for kind in ("wall", "cpu"))
        ratios = ["", ""]
        if base:
            ratios = [_spread(found.ratio(name, base, kind), 2) if name != base else "1" for kind in ("wall", "cpu")]
        others = max(s.others for s in found.of(name))
        shown = (names or {}).get(name, name)
        print(f"| {shown} | {wall} | {cpu} | {ratios[0]} | {ratios[1]} | {_share(others)} |")
    left = len(found.rounds) - len(found.kept)
    told = f"{len(found.kept)} rounds" + (f", {left} left out as busy" if left else "")
    note(told + (f"; **{found.busy_rounds} of them were busy**." if found.busy_rounds else "."))


def goals(*wanted: Goal) -> None:
    """Every goal with what was found."""
    print("\n| goal | must | found | reached |\n|---|---|---|---|")
    for goal in wanted:
        must = f"≤ {goal.at_most:g}" if goal.at_most is not None else f"≥ {goal.at_least:g}"
        found = _spread(goal.found, goal.digits)
        print(f"| {goal.name} | {must} | {found} | {'yes' if goal.reached else '**no**'} |")
    for why in dict.fromkeys(goal.why for goal in wanted if not goal.reached and goal.why):
        note(f"Not reached: {why}")


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Any other table."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def _spread(ratio: Ratio, digits: int) -> str:
    text = f"{ratio.value:.{digits}f}"
    if ratio.low == ratio.high:
        return text
    return f"{text} ({ratio.low:.{digits}f}–{ratio.high:.{digits}f})"


def _share(others: float) -> str:
    return f"{others:.0%}"
