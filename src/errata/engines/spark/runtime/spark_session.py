"""Spark for one project: settings, catalogs, and a session that is started only when rows must be computed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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

LATE_BINDING = "spark.sql.legacy.parameterSubstitution.constantsOnly"
"""Setting with which Spark binds the parameters of a statement while it analyses it, and not before it parses it."""
_GATE_POOL = "gate"
_SESSION_DEFAULTS = {"spark.sql.shuffle.partitions": "16"}
_SESSION_FIXED = {
    # Iceberg sets this only on the session that is active when files are first written under a name
    "spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Spark would expand ${env:NAME} and ${spark.x} in SQL, even in literals, but a partition value is not a template
    "spark.sql.variable.substitute": "false",
    LATE_BINDING: "true",
}


class SparkRuntime:
    """One JVM and one session with this project's catalogs, each started on first use or early, in the background."""

    def __init__(self, project: Project, jars: Sequence[Path], log: Path, session: SparkSession | None = None) -> None:
        self._project = project
        self._jars = jars
        self._log = log
        self._given = session
        self._started: Any = None
        self._own: SparkSession | None = None
        # a caller that needs the JVM or the session while it starts in the background waits here
        self._starting = threading.RLock()
        self._closed = False

    @property
    def log(self) -> Path:
        """Log file for Java's output."""
        return self._log

    def start_early(self, *, session: bool) -> None:
        """Start the JVM, and the session on request, while the caller does something else; returns at once.

        If it fails, the next use tries again and raises the error.
        """
        if self._given is None and self._started is None:
            threading.Thread(target=self._start, args=[session], name="errata-jvm").start()

    def _start(self, session: bool) -> None:
        with suppress(Exception):
            self.gateway  # noqa: B018
            if session and not self._closed:
                self.session  # noqa: B018

    def close(self) -> None:
        """Begin nothing more in the background; the JVM ends with the process."""
        self._closed = True

    @property
    def gateway(self) -> Any:
        """The py4j gateway; starts a JVM but no SparkContext."""
        if self._given is not None:
            return self._given.sparkContext._gateway  # noqa: SLF001  as in jvm.py
        with self._starting:
            if self._started is None:
                self._started = start_jvm(self.settings, self._log, self.redact)
            return self._started

    def redact(self, text: str) -> str:
        """Text without the project's secrets and without passwords in URLs."""
        return hide_passwords(self._project.redact(text))

    @property
    def exit_code(self) -> int | None:
        """Exit code of the JVM that was started here; None while it runs."""
        process = getattr(self._started, "proc", None)
        return None if process is None else process.poll()

    def hold_to(self, throttle: Throttle) -> None:
        """Use the limits of the current run instead of the project's; an existing session keeps its cores."""
        self._project = replace(self._project, throttle=throttle)
        self.__dict__.pop("settings", None)

    @property
    def pool(self) -> str | None:
        """The scheduler pool for chunks in a session given by the caller; None in Errata's own application."""
        return self._project.throttle.pool if self._given is not None else None

    @property
    def gate_pool(self) -> str | None:
        """The scheduler pool for scans of the gate in Errata's own application; None in a session of the caller."""
        return _GATE_POOL if self._given is None else None

    @property
    def session(self) -> SparkSession:
        """A separate session with catalogs, UTC and ANSI; other sessions of the application are not changed."""
        with self._starting:
            if self._own is None:
                own = (self._given or self._base()).newSession()
                for key, value in build_session_settings(self._project, self.submitted or {}).items():
                    own.conf.set(key, value)
                self._own = own
            return self._own

    @property
    def hadoop(self) -> Mapping[str, str]:
        """Hadoop settings for catalogs opened without a session."""
        prefix = "spark.hadoop."
        return {k.removeprefix(prefix): v for k, v in self.settings.items() if k.startswith(prefix)}

    def _base(self) -> SparkSession:
        from pyspark.sql import SparkSession

        self.gateway  # noqa: B018  the JVM first, with its output in the log
        builder = SparkSession.builder
        for key, value in self.settings.items():
            if key not in (self.submitted or {}):
                builder = builder.config(key, value)
        _silence_context_loggers()
        with _keep_interrupt_handler():
            return builder.getOrCreate()

    @cached_property
    def submitted(self) -> Mapping[str, str] | None:
        """The settings with which ``spark-submit`` started this driver; None otherwise."""
        return None if self._given is not None else submitted_settings()

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings of the session, secrets included."""
        settings = build_driver_settings(self._project, self._jars, self.submitted, available=os.cpu_count() or 1)
        if self._jars and (archive := archive_options(self._jars[0].parent, self._jars)):
            java = settings.get("spark.driver.extraJavaOptions", "")
            settings["spark.driver.extraJavaOptions"] = f"{archive} {java}".strip()
        return settings


def _silence_context_loggers() -> None:
    """Keep PySpark from writing every error of a query to stderr as JSON; the error itself is raised and logged."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def build_session_settings(project: Project, submitted: Mapping[str, str]) -> dict[str, str]:
    """Settings of every session of a project; users may override the defaults, the rest is fixed."""
    settings = {k: submitted.get(k, project.spark_conf.get(k, v)) for k, v in _SESSION_DEFAULTS.items()}
    settings |= _SESSION_FIXED
    settings |= to_hadoop_settings(project.s3)
    for catalog in project.catalogs.values():
        settings |= spark_conf(catalog)
    return settings


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Put back the Ctrl-C handler of the program, which pyspark replaces; Python's default is left to pyspark."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread() and before not in (None, signal.default_int_handler):
        signal.signal(signal.SIGINT, before)


@contextmanager
def override_conf(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Use these settings within the block, and the ones from before after it."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)
