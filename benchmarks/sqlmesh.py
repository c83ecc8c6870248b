"""Whole processes against SQLMesh: the same model over the same Iceberg table, on the same machine.

SQLMesh lives in an environment of its own (``make bench-sqlmesh``); without it this question is not answered.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from benchmarks.clock import sample
from benchmarks.lake import FIRST, Shape, make
from benchmarks.process import Done, errata, run
from benchmarks.report import Goal, cases, goals, heading, note
from benchmarks.rounds import REPS, Rounds

__all__ = ["main"]

HOME = Path(__file__).parents[1]
CONFIG = """
gateways:
  spark:
    connection:
      type: spark
      config:
CONF
    state_connection: {type: duckdb, database: STATE}
default_gateway: spark
model_defaults: {dialect: spark, start: '2020-01-01'}
disable_anonymized_analytics: true
"""
MODEL = """
MODEL (
  name bench.NAME,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day BATCH),
  cron '@daily', table_format iceberg, partitioned_by (day)
);
SELECT day, account, CAST(SUM(amount) AS DECIMAL(18, 2)) AS total, COUNT(*) AS n,
  MIN(amount) AS low, MAX(amount) AS high
FROM lake.bench.events WHERE day BETWEEN @start_date AND @end_date GROUP BY day, account
"""
SCRIPT = """
import sys, errata
with errata.open(sys.argv[1]) as client:
    plan = client.plan("bench.daily", "2020-01-01", "2020-02-15", reason="in one process")
    client.approve(plan.id, digest=plan.digest)
    for step in (client.run, client.validate, client.publish):
        step(plan.id)
"""
WHY = "one cold JVM does all five steps; plan and publication are work that SQLMesh does not do."


def main(root: Path, *, quick: bool) -> None:
    """Goal 5."""
    tool = Path(os.environ.get("BENCH_SQLMESH", HOME / ".tools/sqlmesh/bin/sqlmesh"))
    rows = 2_000 if quick else 50_000
    heading(
        f"SQLMesh: 45 days × {rows:,} rows, whole processes",
        "One process each: `sqlmesh plan --auto-apply` with its Spark engine and no audits, and a Python script that "
        "plans, approves, runs, validates and publishes through `errata.open`. Master, memory and shuffle partitions "
        "are the same, and SQLMesh reads and writes the same Iceberg catalog. Errata starts Java with the class "
        "archive that `make setup` creates. The four commands of Errata are what people type. Two of them start a JVM "
        "each, because different people approve and publish at different times.",
    )
    if not tool.exists():
        note("**Not measured**: there is no SQLMesh environment; `make bench-sqlmesh` creates one.")
        return
    lake = make(root / "lake", Shape(45, rows, rows // 4))
    conf = {key: value for key, value in lake.spark.sparkContext.getConf().getAll() if _kept(key)}
    conf |= {key: value for key, value in lake.spark.conf.getAll.items() if key.startswith("spark.sql.catalog.lake")}
    conf |= {"spark.sql.defaultCatalog": "lake", "spark.sql.shuffle.partitions": "16", "spark.ui.enabled": "false"}
    lake.spark.stop()
    lake.close()
    version = run([str(tool), "--version"]).stdout.strip()
    found, files = Rounds(), {}
    for number in range(REPS):
        acts = {f"batch {size or 'unset'}": size for size in (None, 15, 1)}
        samples = {}
        for name, size in acts.items():
            place = root / f"mesh-{size}-{number}"
            model = _project(place, conf, size, number)
            samples[name] = sample(lambda: _mesh(tool, place))  # noqa: B023
            files[name] = len(list((root / "lake/.errata/warehouse").glob(f"*/*{model}*/data/**/*.parquet")))
        parts: dict[str, Done] = {}
        samples["errata"] = sample(lambda: parts.update(_errata(lake.root, number)))  # noqa: B023
        script = [sys.executable, "-c", SCRIPT, str(lake.root)]
        samples["script"] = sample(lambda: run(script))  # noqa: B023
        found.rounds.append(samples)
    named = {"script": "Errata, one process", "errata": "Errata, four commands"}
    cases(found, "script", {**named, **{name: f"SQLMesh, {name}" for name in files}})
    note(f"SQLMesh {version}. Data files it left: " + ", ".join(f"{name} {n}" for name, n in files.items()) + ".")
    note("Errata's commands, wall seconds: " + ", ".join(f"{word} {d.wall:.1f}" for word, d in parts.items()) + ".")
    best = min(files, key=lambda name: found.seconds(name).value)
    goals(
        Goal("Errata ÷ SQLMesh with batch size 1, wall", found.ratio("script", "batch 1"), at_most=0.80, why=WHY),
        Goal(f"Errata ÷ SQLMesh at its best ({best}), wall", found.ratio("script", best), at_most=1.0, why=WHY),
    )


def _kept(key: str) -> bool:
    names = ("spark.driver.memory", "spark.driver.extraClassPath", "spark.sql.extensions", "spark.master")
    return key in names or key.startswith("spark.hadoop.fs.")


def _project(place: Path, conf: dict[str, str], size: int | None, number: int) -> str:
    shutil.rmtree(place, ignore_errors=True)
    (place / "models").mkdir(parents=True)
    told = "\n".join(f'        {key}: "{value}"' for key, value in conf.items())
    config = CONFIG.replace("CONF", told).replace("STATE", str(place / "state.db"))
    (place / "config.yaml").write_text(config, "utf-8")
    name = f"mesh_{size or 'unset'}_{number}"
    batch = f", batch_size {size}" if size else ""
    (place / f"models/{name}.sql").write_text(MODEL.replace("NAME", name).replace("BATCH", batch), "utf-8")
    return name


def _mesh(tool: Path, place: Path) -> Done:
    end = FIRST.replace(month=2, day=15).isoformat()
    command = [str(tool), "plan", "prod", "--auto-apply", "--no-prompts", "--execution-time", f"{end} 00:00:00"]
    return run(command, cwd=place, env={"SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true", "SPARK_LOCAL_IP": "127.0.0.1"})


def _errata(root: Path, number: int) -> dict[str, Done]:
    span = ("--from", FIRST.isoformat(), "--to", FIRST.replace(month=2, day=15).isoformat())
    done = {"plan": errata(root, "plan", "bench.daily", *span, "--reason", f"bench {number}")}
    planned = done["plan"].answer
    name = planned["run_id"]
    done["approve"] = errata(root, "approve", name, "--digest", planned["manifest_digest"])
    done["run --validate"] = errata(root, "run", name, "--validate")
    done["publish"] = errata(root, "publish", name)
    return done
