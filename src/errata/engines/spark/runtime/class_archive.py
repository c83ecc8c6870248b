"""A JVM class-data archive: Spark's and Iceberg's classes are parsed and verified once and memory-mapped afterwards.

Starting a session loads about 15,000 classes; the archive cuts that to about a third of the time. It is a cache, built
on request, named after the Java, Spark and jars it was built with, and ignored by the JVM if they differ.
``ERRATA_CLASS_ARCHIVE=off`` disables it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from errata.errors import SetupError

_TIMEOUT_SECONDS = 600
_MAX_ARCHIVES = 3
_BUILD = "ERRATA_CLASS_ARCHIVE_BUILD"
# everything a correction uses: a catalog, a table, a branch, a scan with aggregates, a diff, Iceberg's Java API
_WORKLOAD = """
import sys, tempfile
from pathlib import Path
from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.spark.runtime.spark_session import SparkRuntime
from errata.engines.spark.versions import has_top_k
from errata.engines.spark.write.append import SparkWriter
from errata.model.product import Catalog, Project
root, jars = Path(sys.argv[1]), [Path(jar) for jar in sys.argv[2:]]
lake = Catalog("lake", "jdbc", f"sqlite:///{root}/catalog.db", str(root / "warehouse"))
project = Project("archive", str(root), "", {"lake": lake}, {}, spark_conf={"spark.driver.memory": "1g"})
runtime = SparkRuntime(project, jars, root / "spark.log")
gateway, session = runtime.gateway, runtime.session
session.sql("CREATE NAMESPACE lake.n")
session.sql("CREATE TABLE lake.n.t (d date, k string, v decimal(12,2)) USING iceberg PARTITIONED BY (d)")
rows = "SELECT date_add(date'2026-01-01', cast(id % 5 AS int)) d, string(id) k, decimal(id) v FROM range(100)"
session.sql(f"INSERT INTO lake.n.t {rows}")
session.sql("ALTER TABLE lake.n.t CREATE BRANCH b")
java = JavaIceberg(gateway, project.catalogs, runtime.hadoop)
staged = session.sql(rows.replace("decimal(id)", "cast(id AS decimal(12,2))"))
SparkWriter(java).append(staged, "lake.n.t", "b", ("errata.attempt", "1"))
session.table("lake.n.t").write.parquet(str(root / "files"))
session.read.parquet(str(root / "files")).groupBy("d").agg({"v": "sum", "k": "count"}).collect()
session.sql("SELECT d, count(*), sum(v), sum(cast(xxhash64(k, v) AS decimal(38,0))) FROM lake.n.t GROUP BY d").collect()
side = "SELECT d, '{}' s, k, named_struct('v', v) x FROM lake.n.t"
both = f"{side.format('b')} UNION ALL {side.format('a')}"
sides = "first(CASE WHEN s = 'b' THEN x END, true) b, first(CASE WHEN s = 'a' THEN x END, true) a"
rows = f"SELECT /*+ REPARTITION(d, k) */ * FROM ({both})"
paired = session.sql(f"SELECT d, k, count_if(s = 'b') nb, {sides} FROM ({rows}) GROUP BY d, k")
words = paired.selectExpr("d", "CASE WHEN b.v <=> a.v THEN '=' ELSE 'x' END w", "nb", "a.v n").persist()
words.createOrReplaceTempView("w")
broken = "SELECT *, max(w = 'x') OVER (PARTITION BY d) m FROM w"
sets = "GROUP BY GROUPING SETS ((d), (w)) ORDER BY g, w DESC LIMIT 9"
session.sql(f"SELECT grouping_id() g, d, w, sum(nb), max(m) FROM ({broken}) {sets}").collect()
session.sql("SELECT percentile_approx(n, array(0.5D), 1000), avg(n), min(d) FROM w").collect()
if has_top_k(session):
    session.sql("SELECT approx_top_k(w, 3, 100) FROM w").collect()
words.unpersist()
java.bulk.snapshots(java.load("lake.n.t"))
session.sparkContext.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait(timeout=200)
"""


def archive_path(cache: Path, jars: Sequence[Path]) -> Path:
    """Path of the archive for this Java, this Spark and these jars, whether or not it exists."""
    import pyspark

    java = Path(shutil.which("java", path=_java_bin()) or "java").resolve()
    # the JVM compares an archive with its class path, so the location of pyspark matters as well
    made_of = [str(java), str(java.stat().st_mtime_ns) if java.exists() else "", pyspark.__version__, pyspark.__file__]
    made_of.append(_WORKLOAD)
    made_of += [f"{jar.name}:{jar.stat().st_size}" for jar in jars]
    return cache / f"classes-{hashlib.sha256(chr(0).join(made_of).encode()).hexdigest()[:16]}.jsa"


def archive_options(cache: Path, jars: Sequence[Path]) -> str:
    """JVM options that use the archive; empty if it does not exist or is disabled."""
    if building := os.environ.get(_BUILD):
        return f"-XX:ArchiveClassesAtExit={building}"
    if os.environ.get("ERRATA_CLASS_ARCHIVE") == "off":
        return ""
    place = archive_path(cache, jars)
    return f"-Xshare:auto -XX:SharedArchiveFile={place}" if place.exists() else ""


def build_archive(cache: Path, jars: Sequence[Path]) -> Path:
    """Run a small workload once and archive its classes; an existing archive is left unchanged."""
    import tempfile

    place = archive_path(cache, jars)
    if place.exists():
        return place
    with tempfile.TemporaryDirectory(prefix="errata-archive-") as scratch:
        draft = Path(scratch) / "classes.jsa"
        command = [sys.executable, "-c", _WORKLOAD, scratch, *map(str, jars)]
        environment = {**os.environ, _BUILD: str(draft)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
        if done.returncode or not draft.exists():
            last = (done.stderr.strip().splitlines() or ["the JVM wrote none"])[-1]
            raise SetupError(
                f"the class archive was not made: {last}",
                state="everything works without it; each command starts a few seconds later",
            )
        cache.mkdir(parents=True, exist_ok=True)
        kept = place.with_suffix(f".{os.getpid()}.tmp")
        shutil.copyfile(draft, kept)
        kept.replace(place)
    for old in sorted(cache.glob("classes-*.jsa"), key=lambda path: path.stat().st_mtime)[:-_MAX_ARCHIVES]:
        old.unlink(missing_ok=True)
    return place


def _java_bin() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin") if home else None
