"""Publication moves pointers: ten times the bytes in as many files, and many more partitions."""

from __future__ import annotations

from pathlib import Path

from benchmarks.clock import Sample, sample
from benchmarks.lake import Lake, Shape, make
from benchmarks.report import Goal, goals, heading, lines
from benchmarks.rounds import REPS, WARM, Ratio, Rounds

__all__ = ["main"]


def main(root: Path, *, quick: bool) -> None:
    """Goals 7, 8 and 9."""
    days, rows = (6, 100) if quick else (45, 4_000)
    shapes = {"narrow": Shape(days, rows, rows), "wide": Shape(days, rows, rows, note=700)}
    if not quick:
        shapes["many"] = Shape(1825, 100, 100)
    lakes = {name: make(root / name, shape) for name, shape in shapes.items()}
    found, candidates, undone, written = Rounds(), Rounds(), Rounds(), 0
    for number in range(WARM + REPS):
        published: dict[str, Sample] = {}
        assembled: dict[str, Sample] = {}
        back: dict[str, Sample] = {}
        for name, lake in lakes.items() if number % 2 else reversed(lakes.items()):
            assembled[name] = _candidate(lake)
            before = _data_files(lake)
            published[name] = sample(lambda lake=lake: lake.client.publish(lake.last))
            written += len(_data_files(lake) - before)
            back[name] = sample(lambda lake=lake: lake.client.rollback(lake.last, reason="bench"))
        if number >= WARM:
            found.rounds.append(published)
            candidates.rounds.append(assembled)
            undone.rounds.append(back)
    heading(
        "Publication: bytes, partitions, rollback",
        "Validated candidates are published and rolled back. Wide rows have about ten times the bytes in the same "
        "number of files.",
    )
    rows_of = []
    for name, lake in lakes.items():
        files, size = lake.files()
        times = [f"{of.seconds(name).value:.2f}" for of in (candidates, found, undone)]
        rows_of.append((name, f"{lake.shape.days:,}", f"{files:,}", f"{size / 1024**2:.1f}", *times))
    lines(("case", "partitions", "files", "MiB", "candidate s", "publish s", "rollback s"), rows_of)
    wanted = [
        Goal("publish, ten times the bytes ÷ once", found.ratio("wide", "narrow"), at_most=1.2),
        Goal("data files written by publications", Ratio.of([written]), at_most=0, digits=0),
        Goal("rollback ÷ publish", _ratio(undone, found, "narrow"), at_most=1.0),
    ]
    if "many" in lakes:
        both = [
            (c["many"].wall + p["many"].wall) / (c["narrow"].wall + p["narrow"].wall)
            for c, p in zip(candidates.rounds, found.rounds, strict=True)
        ]
        wanted.append(Goal("candidate + publish, 1,825 ÷ 45 partitions", Ratio.of(both), at_most=5))
    goals(*wanted)
    for lake in lakes.values():
        lake.close()


def _candidate(lake: Lake) -> Sample:
    """Everything up to a verdict; the sample is of making the candidate alone."""
    lake.staged()
    staging, taken = lake.engines.staging, []
    real = staging.make_candidate

    def timed(*args: object) -> object:
        made: list[object] = []
        taken.append(sample(lambda: made.append(real(*args))))
        return made[0]

    staging.make_candidate = timed
    lake.client.validate(lake.last)
    del staging.make_candidate
    return taken[0]


def _data_files(lake: Lake) -> set[Path]:
    return set((lake.root / ".errata/warehouse").rglob("*.parquet"))


def _ratio(over: Rounds, under: Rounds, name: str) -> Ratio:
    return Ratio.of([o[name].wall / u[name].wall for o, u in zip(over.rounds, under.rounds, strict=True)])
