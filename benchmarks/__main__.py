"""Run the benchmarks and print Markdown: ``python -m benchmarks [governed] [publish] [plan]``."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks import lake
from benchmarks.clock import HEAD, Taken, row, taken

REPS = int(os.environ.get("BENCH_REPS", "3"))

BARE_PLAN = """
import sys
from pyiceberg.catalog import load_catalog
place = sys.argv[1]
catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{place}/.errata/catalog.db", warehouse=f"file://{place}/.errata/warehouse")
for name in ("bench.daily", "bench.events"):
    print(catalog.load_table(name).inspect.partitions().num_rows)
"""


def governed(root: Path) -> None:
    """Governed correction ÷ one bare job with the same transform and write options, 45 days × 200 k rows."""
    made = lake.make(root / "g", days=45, rows_per_day=200_000, accounts=50_000, chunk="40MiB")
    made.bare()
    made.governed()
    bare: list[Taken] = []
    whole: list[Taken] = []
    for n in range(REPS):
        acts = [(bare, made.bare), (whole, made.governed)]
        for found, act in acts if n % 2 else acts[::-1]:
            found.append(taken(act))
    print("\n## Governed ÷ bare, 45 days × 200,000 rows\n")
    print(
        "Plan, approve, run, validate (3 checks, 1 reconciliation, checksums, prior) and publish; one warm session.\n"
    )
    print(HEAD)
    print(row("bare `overwritePartitions`, one job", bare))
    print(row("governed, with validation", whole, bare))
    print("\nParts of one governed repetition:\n\n| plan | run | validate | publish |\n|---|---|---|---|")
    print("| " + " | ".join(f"{seconds:.1f} s" for seconds in _parts(made)) + " |")
    made.client.close()


def _parts(made: lake.Lake) -> list[float]:
    client, plans = made.client, []
    steps = [taken(lambda: plans.append(made.plan())).wall]
    client.approve(plans[0].id, digest=plans[0].digest)
    steps += [taken(partial(act, plans[0].id)).wall for act in (client.run, client.validate, client.publish)]
    return steps


def publish(root: Path) -> None:
    """Candidate and publish at 1,825 partitions ÷ at 45: the price of a partition is a file list, not its bytes."""
    print("\n## Candidate + publish by partitions (same session, warm)\n")
    print("| partitions | candidate s | publish s | rollback s | candidate + publish ÷ 45 |\n|---|---|---|---|---|")
    base = 0.0
    for days in (45, 1825):
        made = lake.make(root / f"p{days}", days=days, rows_per_day=400, accounts=100, chunk="64MiB")
        times = [_publish_once(made) for _ in range(REPS)]
        candidate, published, back = (median(t[n] for t in times) for n in range(3))
        base = base or candidate + published
        print(f"| {days:,} | {candidate:.2f} | {published:.2f} | {back:.2f} | {(candidate + published) / base:.1f} |")
        made.client.close()


def _publish_once(made: lake.Lake) -> tuple[float, float, float]:
    run = made.governed(validate=False)["run"]
    made.client.validate(run)
    at = {entry.action: datetime.fromisoformat(entry.at) for entry in made.client.audit_log(run)}
    candidate = (at["candidate.made"] - at["candidate.intended"]).total_seconds()
    published = taken(lambda: made.client.publish(run)).wall
    back = taken(lambda: made.client.rollback(run, reason="bench")).wall
    return candidate, published, back


def plan(root: Path) -> None:
    """``errata plan`` for 1,825 days ÷ a bare script that imports pyiceberg and lists the same partitions."""
    place = root / "p1825"
    if not place.exists():
        lake.make(place, days=1825, rows_per_day=400, accounts=100, chunk="64MiB").client.close()
    bare, planned = [], []
    command = [sys.executable, "-m", "errata", "-C", str(place), "plan", "bench.daily", "--json"]
    command += ["--from", "2020-01-01", "--to", "2024-12-30"]
    for n in range(REPS + 1):
        bare.append(taken(lambda: _run([sys.executable, "-c", BARE_PLAN, str(place)])))
        reason = ["--reason", f"bench {n}", "--override", "overlap=bench"]
        planned.append(taken(partial(_run, [*command, *reason])))
    print("\n## `errata plan`, 1,825 daily partitions (target and input), whole process\n")
    print(HEAD)
    print(row("bare script: pyiceberg lists the partitions of both tables", bare[1:]))
    print(row("`errata plan` (verdicts, fingerprints, manifest, ledger, tags)", planned[1:], bare[1:]))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")


def main() -> None:
    """Head, then each benchmark that was asked for."""
    wanted = sys.argv[1:] or ["governed", "publish", "plan"]
    print("# Benchmarks\n")
    print(
        f"{datetime.now(UTC):%Y-%m-%d} · {os.cpu_count()} cores · Python {platform.python_version()} · "
        f"PySpark {version('pyspark')} · pyiceberg {version('pyiceberg')} · median of {REPS} · local disk, "
        "JDBC catalog on SQLite. Ratios, not seconds, are what to read: `others` is the share of the machine that "
        "other processes took."
    )
    with tempfile.TemporaryDirectory(prefix="errata-bench-") as place:
        for name in wanted:
            {"governed": governed, "publish": publish, "plan": plan}[name](Path(place))


if __name__ == "__main__":
    main()
