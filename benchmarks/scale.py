"""Many files and scattered partitions in little memory: candidate, publication and rollback of metadata alone.

Each case is a process with a JVM of a fixed heap; the files exist in metadata only, so nothing but the commits is
measured. What is run is the publisher itself, with a log in memory in place of the ledger.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.report import Goal, goals, heading, lines
from benchmarks.rounds import Ratio

__all__ = ["main"]

TABLE, RUN = "lake.fin.big", "run1"
_STEP = 2_000


@dataclass(frozen=True, slots=True)
class Case:
    """Numbers of files and columns; ``apart`` is the distance between two days."""

    files: int
    columns: int
    partitions: int
    heap: str
    apart: int = 1


FULL = {
    "20,000 files × 20 columns": Case(20_000, 20, 1_825, "1g"),
    "100,000 files × 8 columns": Case(100_000, 8, 1_825, "2g"),
    "50,000 scattered partitions": Case(50_000, 8, 50_000, "1g", apart=2),
    "43,800 partitions": Case(43_800, 8, 43_800, "1g"),
    "1,825 partitions": Case(1_825, 8, 1_825, "1g"),
}
QUICK = {
    "400 files × 20 columns": Case(400, 20, 40, "512m"),
    "43,800 partitions": Case(960, 8, 960, "512m"),
    "1,825 partitions": Case(40, 8, 40, "512m"),
}


def main(root: Path, *, quick: bool) -> None:
    """Heap, seconds and tries of each case."""
    found = {name: _measured(root / str(n), case) for n, (name, case) in enumerate((QUICK if quick else FULL).items())}
    heading(
        "Many files, scattered partitions, little memory",
        "Files exist only in the tables' metadata. The publisher commits them with a JVM of the given heap. Peak is "
        "the sum of the highest use of each heap pool.",
    )
    cases = QUICK if quick else FULL
    lines(
        ("case", "heap", "candidate s", "publish s", "rollback s", "tries", "peak MB", "Python MB"),
        [
            (
                name,
                cases[name].heap,
                *(f"{seconds[act]:.1f}" for act in ("candidate", "publish", "rollback")),
                f"{seconds['tries']:.0f}",
                f"{seconds['peak']:.0f}",
                f"{seconds['python']:.0f}",
            )
            for name, seconds in found.items()
        ],
    )
    ratio = found["43,800 partitions"]["publish"] / found["1,825 partitions"]["publish"]
    goals(Goal("publish, 43,800 ÷ 1,825 partitions", Ratio.of([ratio]), at_most=12))


def _measured(root: Path, case: Case) -> dict[str, float]:
    told = json.dumps([case.files, case.columns, case.partitions, case.heap, case.apart])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", str(root), told], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@dataclass
class _Log:
    """Intents in memory."""

    tries: int = 0
    details: list[Mapping[str, object]] = field(default_factory=list)

    def open_intent(self, detail: Mapping[str, object]) -> str:
        self.details.append(detail)
        return f"{RUN}-{detail['kind']}"

    def update(self, _publication_id: str, _detail: Mapping[str, object]) -> None: ...

    def last_look(self) -> None:
        self.tries += 1

    def record_committed(self, _publication_id: str, _snapshot_id: str) -> None: ...

    def record_abandoned(self, publication_id: str, reason: str) -> NoReturn:
        raise RuntimeError(f"{publication_id}: {reason}")


def _answer(root: Path, case: Case) -> dict[str, float]:
    from errata.engines.iceberg.commits.java import JavaIceberg
    from errata.engines.iceberg.commits.publish import IcebergPublishing
    from errata.engines.iceberg.commits.refs import ensure_guard, open_branch
    from errata.engines.iceberg.commits.staging import IcebergStaging
    from errata.engines.spark.runtime.jvm import start_jvm
    from errata.jars import require_jars
    from errata.model.partition import Grain
    from errata.model.product import Catalog
    from errata.publishing.replacement import commit_replacement

    (root / ".errata").mkdir(parents=True)
    jars = ":".join(map(str, require_jars()))
    gateway = start_jvm({"spark.driver.memory": case.heap, "spark.driver.extraClassPath": jars}, root / "java.log")
    lake = Catalog("lake", "jdbc", f"sqlite:///{root}/.errata/catalog.db", str(root / "warehouse"))
    (root / ".errata" / "catalog.db").touch()  # Errata opens catalogs and creates none
    bare = {"fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
    java = JavaIceberg(gateway, {"lake": lake}, bare)
    many = _compiled(gateway)
    per_day = case.files // case.partitions or 1
    table = _created(java, many, case)

    def fill(prefix: str, branch: str | None) -> None:
        for first in range(0, case.files, _STEP):
            table.refresh()
            append = table.newFastAppend()
            append = append.toBranch(branch) if branch else append
            many.fill(table, append, prefix, first, min(first + _STEP, case.files), per_day, case.apart)
            append.commit()

    fill("old", None)
    ensure_guard(java, TABLE)
    open_branch(java, TABLE, f"errata_{RUN}", 45)
    fill("new", f"errata_{RUN}")
    count = -(-case.files // per_day)
    days = tuple((date(1970, 1, 1) + timedelta(days=1000 + n * case.apart)).isoformat() for n in range(count))
    target = _pin(table, Grain.DAY)
    staging, publishing = IcebergStaging(java), IcebergPublishing(java, _never)
    found: dict[str, float] = {"peak": 0}

    def timed(name: str, act: Callable[[], Any]) -> Any:
        many.reset()
        started = time.monotonic()
        made = act()
        found[name] = time.monotonic() - started
        found["peak"] = max(found["peak"], many.peak())
        return made

    staged = [f"{table.location()}/data/new-{n}-00000-0000000000000000.parquet" for n in range(case.files)]
    candidate = timed("candidate", lambda: staging.make_candidate(target, RUN, f"errata_{RUN}_c1", days, staged, 7))
    log = _Log()
    order = _order("publish", target, days, candidate.snapshot_id, publishing)
    landed = timed("publish", lambda: commit_replacement(order, publishing, _never, log))  # type: ignore[arg-type]
    found["tries"] = log.tries
    undo = str(java.load(TABLE).refs().get(f"errata_{landed.publication_id}_undo").snapshotId())
    back = _order("rollback", target, days, undo, publishing)
    timed("rollback", lambda: commit_replacement(back, publishing, _never, log))  # type: ignore[arg-type]
    found["python"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    gateway.shutdown()
    return found


def _order(kind: str, target: Any, days: tuple[str, ...], source: str, publishing: Any) -> Any:
    """A replacement of what is live now by the files of a snapshot, which a run has from its manifest and ledger."""
    from errata.model.table import group_by_partition
    from errata.publishing.replacement import Replacement

    version = publishing.version(target)
    return Replacement(
        kind=kind,
        run_id=RUN,
        product="fin.big",
        manifest_digest="digest",
        target=target,
        partitions=days,
        expected=group_by_partition(version.live(days), days),
        base_snapshot_id=version.snapshot_id,
        add=group_by_partition(publishing.files_of(target, source, days), days),
        add_from=(source,),
        undo_days=30,
        keep_refs={},
        content_columns=("day",),
    )


def _pin(table: Any, grain: Any) -> Any:
    from errata.model.manifest import TargetPin

    columns = {str(field.name()): str(field.type().toString()) for field in table.schema().columns()}
    spec, schema = int(table.spec().specId()), int(table.schema().schemaId())
    uuid, head = str(table.uuid().toString()), str(table.currentSnapshot().snapshotId())
    return TargetPin(TABLE, uuid, head, schema, spec, "day", "date", "identity", grain, columns, (), "", {}, 2)


def _created(java: Any, many: Any, case: Case) -> Any:
    catalog, name = java.place(TABLE)
    catalog.createNamespace(name.namespace())
    schema = many.schema(case.columns)
    spec = java.jvm.org.apache.iceberg.PartitionSpec.builderFor(schema).identity("day").build()
    properties = java.jvm.java.util.HashMap()
    properties.put("format-version", "2")
    return catalog.createTable(name, schema, spec, None, properties)


def _compiled(gateway: Any) -> Any:
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name("ManyFiles.java").read_text("utf-8"))
    kind = compiler.getClassLoader().loadClass("ManyFiles")
    return kind.getDeclaredConstructor(gateway.new_array(jvm.Class, 0)).newInstance(gateway.new_array(jvm.Object, 0))


def _never() -> NoReturn:
    raise RuntimeError("nothing here needs Spark")


if __name__ == "__main__":
    print(json.dumps(_answer(Path(sys.argv[1]), Case(*json.loads(sys.argv[2])))))
