"""Spark for one project: settings, catalogs, and a session that is started only when something must be computed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.catalogs import spark_conf
from errata.engines.s3 import to_hadoop_settings
from errata.engines.spark.runtime.class_archive import archive_options
from errata.engines.spark.runtime.jvm import start_jvm, submitted_settings
from errata.engines.spark.runtime.placement import build_driver_settings
from errata.model.product import Project
from errata.model.product.throttle import Throttle
from errata.text.secrets import hide_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_DEFAULTS = {"spark.sql.shuffle.partitions": "16"}
_SESSION_FIXED = {
    # Iceberg sets it on whichever session is active when files are first written under a name; ours may be another
    "spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Spark would put ${env:NAME} and ${spark.x} into SQL, also inside literals: a partition's value is not a template
    "spark.sql.variable.substitute": "false",
}


class SparkRuntime:
    """One JVM, and one session with this project's catalogs, each made when first asked for."""

    def __init__(self, project: Project, jars: Sequence[Path], log: Path, session: SparkSession | None = None) -> None:
        self._project = project
        self._jars = jars
        self._log = log
        self._given = session

    @property
    def log(self) -> Path:
        """Where Java's own chatter goes."""
        return self._log

    @cached_property
    def gateway(self) -> Any:
        """The py4j gateway; a JVM, but no SparkContext."""
        if self._given is not None:
            return self._given.sparkContext._gateway  # noqa: SLF001  as in jvm.py
        return start_jvm(self._settings, self._log, self._redact_text)

    def _redact_text(self, text: str) -> str:
        return hide_passwords(self._project.redact(text))

    @property
    def exit_code(self) -> int | None:
        """How the JVM that was started here ended; None while it lives."""
        process = getattr(self.__dict__.get("gateway"), "proc", None)
        return None if process is None else process.poll()

    def hold_to(self, throttle: Throttle) -> None:
        """The limits of the run at hand instead of the project's; a session that is there already keeps its cores."""
        self._project = replace(self._project, throttle=throttle)
        self.__dict__.pop("_settings", None)

    @property
    def pool(self) -> str | None:
        """The scheduler pool of chunks when the session is the caller's; an application of our own needs none."""
        return self._project.throttle.pool if self._given is not None else None

    @cached_property
    def session(self) -> SparkSession:
        """A session of its own: catalogs, UTC, ANSI; other sessions of the same application are not changed."""
        base = self._given or self._base()
        own = base.newSession()
        for key, value in build_session_settings(self._project, self.submitted or {}).items():
            own.conf.set(key, value)
        return own

    @property
    def hadoop(self) -> Mapping[str, str]:
        """Hadoop settings for catalogs opened without a session."""
        prefix = "spark.hadoop."
        return {k.removeprefix(prefix): v for k, v in self._settings.items() if k.startswith(prefix)}

    def _base(self) -> SparkSession:
        from pyspark.sql import SparkSession

        self.gateway  # noqa: B018  the JVM first, with its output in the log
        builder = SparkSession.builder
        for key, value in self._settings.items():
            if key not in (self.submitted or {}):
                builder = builder.config(key, value)
        return builder.getOrCreate()

    @cached_property
    def submitted(self) -> Mapping[str, str] | None:
        """What ``spark-submit`` started this driver with; None when Errata starts its own JVM."""
        return None if self._given is not None else submitted_settings()

    @cached_property
    def _settings(self) -> dict[str, str]:
        settings = build_driver_settings(self._project, self._jars, self.submitted, available=os.cpu_count() or 1)
        if self._jars and (archive := archive_options(self._jars[0].parent, self._jars)):
            java = settings.get("spark.driver.extraJavaOptions", "")
            settings["spark.driver.extraJavaOptions"] = f"{archive} {java}".strip()
        return settings


def build_session_settings(project: Project, submitted: Mapping[str, str]) -> dict[str, str]:
    """What every session of a project runs with; users may set the first group, the rest is fixed."""
    settings = {k: submitted.get(k, project.spark_conf.get(k, v)) for k, v in _SESSION_DEFAULTS.items()}
    settings |= _SESSION_FIXED
    settings |= to_hadoop_settings(project.s3)
    for catalog in project.catalogs.values():
        settings |= spark_conf(catalog)
    return settings
