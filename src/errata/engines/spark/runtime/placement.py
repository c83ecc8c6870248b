"""Spark settings by where the driver runs: this machine, a cluster joined from here, or under ``spark-submit``. Pure.

``spark-submit`` wins: settings from its command line and the cluster's defaults are kept, and the project's settings
fill in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from errata.model.product import Project
from errata.model.product.cluster import build_core_settings, cap_master, classify_master

LOCAL_FILES = {"fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
"""Avoids forking a chmod for each local file; the jar must be on the driver's class path."""

REDACTED = "(?i)secret|passw|token|credential|authorization|(api|access|private|account)[._-]?key"
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    # the driver lists even thousands of pinned files: a Spark job with a task per path costs more than it saves
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.log.level": "WARN",
    # between pools only: a wave is judged while the next ones are computed, and must not wait behind all their tasks
    "spark.scheduler.mode": "FAIR",
    # hidden in Spark's UI and event logs; catalogs have more names for credentials than Spark knows
    "spark.redaction.regex": REDACTED,
}
_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    **{f"spark.hadoop.{key}": value for key, value in LOCAL_FILES.items()},
}


def build_driver_settings(
    project: Project, jars: Sequence[Path], submitted: Mapping[str, str] | None = None, *, available: int = 1
) -> dict[str, str]:
    """All settings made before the session starts; those from ``spark-submit`` (``submitted``) win."""
    conf, cores = project.spark_conf, project.throttle.cores
    master = (submitted or {}).get("spark.master", project.spark_master)
    kind = classify_master(master)
    settings = {
        **_DEFAULTS,
        **(_ONE_MACHINE if kind == "local" and submitted is None else {}),
        "spark.app.name": f"errata {project.name}",
        "spark.master": cap_master(master, cores, available),
        "spark.sql.warehouse.dir": str(Path(project.root) / ".errata" / "spark-warehouse"),
        **({} if submitted is not None else _class_path(kind, jars, conf)),
        **{key: value for key, value in conf.items() if key != "spark.jars"},
        **build_core_settings(kind, cores, {**conf, **(submitted or {})}),
    }
    return settings | dict(submitted or {})


def _class_path(kind: str, jars: Sequence[Path], conf: Mapping[str, str]) -> dict[str, str]:
    """Jar settings: the driver reads jars in place and sends them to executors on other machines."""
    sent = [*(map(str, jars) if kind != "local" else ()), *filter(None, [conf.get("spark.jars")])]
    found = {"spark.driver.extraClassPath": ":".join(map(str, jars))}
    return found | ({"spark.jars": ",".join(sent)} if sent else {})
