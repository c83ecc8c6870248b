"""The command line as a process of its own, without what most of its time would go into.

Starting a JVM, and importing Spark's and Iceberg's Python, is most of the time a killed command takes. Here the Python
that is killed is a real process with its own connections to ledger and catalog, forked from one that has imported
everything and opened nothing (``support.forks``). What it asks of Java is served by the JVM of the tests; a gateway
call waits for its answer, so a process that dies at a failpoint leaves nothing running there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.forks import FORKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Attached", "start", "start_program", "start_without_jvm"]

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


class Attached:
    """As much of a ``Popen`` as tests use."""

    def __init__(self, environment: dict[str, str], program: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        handle, name = tempfile.mkstemp(prefix="errata-attached-")
        os.close(handle)
        self._said = Path(name)
        self._process = FORKS.Process(target=_run, args=(environment, program, arguments, name), daemon=True)
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
        """Nothing, and what it said, when it has ended."""
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
    return Attached({**os.environ, **served, **environment}, _command_on_spark, arguments)


def start_without_jvm(*arguments: str, **environment: str) -> Attached:
    """A command that needs no JVM."""
    return start_program(_command, *arguments, **environment)


def start_program(program: Callable[..., object], *arguments: Any, **environment: str) -> Attached:
    """A function of a module; what it returns is the exit code."""
    return Attached({**os.environ, **environment}, program, arguments)


def _run(environment: dict[str, str], program: Callable[..., object], arguments: tuple[Any, ...], said: str) -> None:
    from errata import failpoints

    os.environ.clear()
    os.environ.update(environment)
    failpoints.arm_from_environment(
        environment.get("ERRATA_FAILPOINTS", "")
    )  # read at import, which was before the fork
    with Path(said).open("w") as words:
        os.dup2(words.fileno(), sys.stdout.fileno())
        os.dup2(words.fileno(), sys.stderr.fileno())
    sys.exit(program(*arguments))


def _command(*arguments: str) -> int:
    from errata.cli.main import main

    return main(list(arguments))


def _command_on_spark(*arguments: str) -> int:
    import errata
    from errata.cli.app.session import CliEnvironment
    from errata.cli.main import main

    return main(list(arguments), CliEnvironment(open_project=partial(errata.open, spark=_session())))


def _session() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    for name in (_PORT, _SECRET):  # only for this connection: Errata itself was not started by spark-submit
        del os.environ[name]
    context = getattr(gateway.jvm, "org.apache.spark.SparkContext").getOrCreate()
    java = gateway.jvm.JavaSparkContext(context)
    return SparkSession(SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf())))
