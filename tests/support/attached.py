"""The command line as a process of its own in a JVM that runs already.

Starting a JVM, and importing Spark's and Iceberg's Python, is most of the time a killed command takes. Here the Python
that is killed is a real process with its own connections to ledger and catalog, forked from one that has imported
everything and opened nothing; what it asks of Java is served by the JVM of the tests. A gateway call waits for its
answer, so a process that dies at a failpoint leaves nothing running there.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Attached", "start"]

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["support.attached", "errata.cli.main", "errata.wiring.engines", "pyspark.sql", "pyiceberg.catalog.sql"]
)


class Attached:
    """As much of a ``Popen`` as tests use."""

    def __init__(self, environment: dict[str, str], arguments: tuple[str, ...]) -> None:
        handle, name = tempfile.mkstemp(prefix="errata-attached-")
        os.close(handle)
        self._said = Path(name)
        self._process = _FORKS.Process(target=_command, args=(environment, arguments, name), daemon=True)
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """Minus the signal, where one ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its return code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("errata", timeout or 0, stderr=self._said.read_bytes())
        return self._process.exitcode

    def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()

    def communicate(self, timeout: float = 180) -> tuple[str, str]:
        """Nothing, and what it said on standard error, when it has ended."""
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        said = self._said.read_text("utf-8")
        self._said.unlink()
        return "", said


def start(session: SparkSession, *arguments: str, **environment: str) -> Attached:
    """The command in a process that uses the JVM of this session."""
    gateway: Any = session.sparkContext._gateway
    served = {_PORT: str(gateway.java_parameters.port), _SECRET: gateway.java_parameters.auth_token}
    return Attached({**os.environ, **served, **environment}, arguments)


def _command(environment: dict[str, str], arguments: tuple[str, ...], said: str) -> None:
    import errata
    from errata import failpoints
    from errata.cli.app.session import CliEnvironment
    from errata.cli.main import main

    os.environ.clear()
    os.environ.update(environment)
    failpoints.arm_from_environment(
        environment.get("ERRATA_FAILPOINTS", "")
    )  # read at import, which was before the fork
    with Path(said).open("w") as errors, Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
        os.dup2(errors.fileno(), sys.stderr.fileno())
    sys.exit(main(list(arguments), CliEnvironment(open_project=partial(errata.open, spark=_session()))))


def _session() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    for name in (_PORT, _SECRET):  # only for this connection: Errata itself was not started by spark-submit
        del os.environ[name]
    java = gateway.jvm.JavaSparkContext(gateway.jvm.org.apache.spark.SparkContext.getOrCreate())
    return SparkSession(SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf())))
