"""``errata plan`` and ``errata stale`` by number of partitions: time and memory of whole processes.

Planning is compared with a bare pyiceberg script, staleness with planning. What `errata stale` compares with is a run
in the ledger that published every partition; its states are set there, because the tables have no data to compute.

The tables are made of metadata alone: planning reads manifests and never a data file.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path

from benchmarks.clock import Sample, sample
from benchmarks.lake import Shape, write_project
from benchmarks.process import Done, errata, run
from benchmarks.report import Goal, cases, goals, heading, lines, note
from benchmarks.rounds import REPS, WARM, Ratio, Rounds

__all__ = ["main"]

FIRST = date(1900, 1, 1)
BARE = """
import sys
from pyiceberg.catalog import load_catalog
place = sys.argv[1]
catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{place}/.errata/catalog.db", warehouse=f"file://{place}/.errata/warehouse")
for name in ("bench.daily", "bench.events"):
    print(catalog.load_table(name).inspect.partitions().num_rows)
"""


def main(root: Path, *, quick: bool) -> None:
    """Goal 12."""
    few, many = (20, 200) if quick else (1_825, 43_800)
    places = {days: root / f"d{days}" for days in (few, many)}
    for days, place in places.items():
        _make(place, days)
    _accept(places[few], few)
    found, memory = Rounds(), dict[str, list[float]]()
    for number in range(WARM + min(REPS, 3)):
        samples: dict[str, Sample] = {}
        for days, place in places.items():
            for kind in ("bare", "plan", *(("stale",) if days == few else ())):
                done: list[Done] = []
                samples[f"{kind} {days}"] = sample(lambda: done.append(_act(kind, place, days, number)))  # noqa: B023
                if number >= WARM:
                    memory.setdefault(f"{kind} {days}", []).append(done[0].megabytes)
        if number >= WARM:
            found.rounds.append(samples)
    heading(
        f"Planning {few:,} and {many:,} partitions",
        "Whole processes. The bare script imports pyiceberg and lists the partitions of both tables; `errata plan` "
        "also checks guardrails, pins inputs, and writes the run manifest and the ledger. `errata stale` compares all "
        "partitions with the run that published them.",
    )
    cases(found, f"bare {few}")
    note("Memory:\n")
    lines(list(memory), [[f"{Ratio.of(values).value:.0f} MiB" for values in memory.values()]])
    more = [b / a for a, b in zip(memory[f"plan {few}"], memory[f"plan {many}"], strict=True)]
    goals(
        Goal(f"`errata plan` ÷ bare script, {few:,}, wall", found.ratio(f"plan {few}", f"bare {few}"), at_most=1.5),
        Goal(f"`errata plan`, {many:,} ÷ {few:,}, wall", found.ratio(f"plan {many}", f"plan {few}"), at_most=6),
        Goal(f"memory, {many:,} ÷ {few:,}", Ratio.of(more), at_most=3),
        Goal(f"`errata stale` ÷ `errata plan`, {few:,}, wall", found.ratio(f"stale {few}", f"plan {few}"), at_most=2),
    )


def _act(kind: str, place: Path, days: int, number: int) -> Done:
    if kind == "bare":
        return run([sys.executable, "-c", BARE, str(place)])
    if kind == "stale":
        return errata(place, "stale", "bench.daily")
    span = ("--from", FIRST.isoformat(), "--to", (FIRST + timedelta(days=days)).isoformat())
    reason = ("--reason", f"bench {number}", "--override", "overlap=bench")
    return errata(place, "plan", "bench.daily", *span, *reason)


def _accept(place: Path, days: int) -> None:
    """A run that published every partition as it is, so that all are current by what was recorded."""
    import errata as package
    from errata.model.audit import Actor
    from errata.model.partition import Grain
    from errata.model.run import RunState as S

    actor = Actor("bench", "bench", "bench")
    with package.open(str(place)) as client:
        span = (FIRST.isoformat(), (FIRST + timedelta(days=days)).isoformat())
        run = client.plan("bench.daily", *span, reason="accepted").id
        workspace = client._workspace  # noqa: SLF001 - a benchmark may look inside
        ledger = workspace.ledger
        for state in (S.APPROVED, S.RUNNING, S.STAGED, S.VALIDATED):
            ledger.runs.move(run, state, actor=actor)
        target = workspace.engines.targets.read_target("lake.bench.daily", "day", Grain.DAY, None)
        files = {name: [[one.content, one.path, one.rows] for one in held] for name, held in target.expected.items()}
        names = ledger.runs.get(run).partitions
        intent = ledger.publications.intend(
            run, "publish", names, table="lake.bench.daily", person="bench", reason="accepted",
            detail={"remove": {}, "add": files, "with_deletes": []}, lease_seconds=60, actor=actor,
            release={"snapshot_id": "1"}, consumers=(),
        )  # fmt: skip
        ledger.publications.settle(
            intent.pub_id, "committed", actor=actor, snapshot_id=target.base_snapshot_id or "", data_files_written=0
        )
        if not client.stale("bench.daily").ok:
            raise AssertionError("expected every partition to be current")


def _make(place: Path, days: int) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType

    write_project(place, Shape(days, 1, 1))
    where = {"uri": f"sqlite:///{place}/.errata/catalog.db", "warehouse": f"file://{place}/.errata/warehouse"}
    catalog = load_catalog("lake", type="sql", **where)
    catalog.create_namespace("bench")
    kinds = {
        "bench.events": (("account", LongType()), ("amount", DecimalType(12, 2)), ("note", StringType())),
        "bench.daily": (
            ("account", LongType()),
            ("total", DecimalType(18, 2)),
            ("n", LongType()),
            ("low", DecimalType(12, 2)),
            ("high", DecimalType(12, 2)),
        ),
    }
    for name, columns in kinds.items():
        fields = [NestedField(n + 2, column, kind, required=False) for n, (column, kind) in enumerate(columns)]
        schema = Schema(NestedField(1, "day", DateType(), required=False), *fields)
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
        table = catalog.create_table(name, schema, partition_spec=spec)
        _fill(table, days)


def _fill(table: object, days: int) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    epoch = date(1970, 1, 1)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:  # type: ignore[attr-defined]
        for n in range(days):
            day = (FIRST - epoch).days + n
            append.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{table.location()}/data/{n}.parquet",  # type: ignore[attr-defined]
                    file_format=FileFormat.PARQUET,
                    partition=Record(day),
                    record_count=1000,
                    file_size_in_bytes=100_000,
                    column_sizes={},
                    value_counts={},
                    null_value_counts={},
                    nan_value_counts={},
                    lower_bounds={},
                    upper_bounds={},
                    spec_id=0,
                )
            )
