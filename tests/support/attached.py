"""The command line as a process of its own in a JVM that runs already: ``python -m support.attached run RUN``.

Starting a JVM is most of the time a killed command takes. Here the Python that is killed is a real process with its
own connections to ledger and catalog; what it asks of Java is served by the JVM of the tests. A gateway call waits for
its answer, so a process that dies at a failpoint leaves nothing running there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["start"]

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def start(session: SparkSession, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The command in a process that uses the JVM of this session."""
    gateway: Any = session.sparkContext._gateway
    served = {_PORT: str(gateway.java_parameters.port), _SECRET: gateway.java_parameters.auth_token}
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "support.attached", *arguments],
        env={**os.environ, **served, "PYTHONPATH": paths, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _attached() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    for name in (_PORT, _SECRET):  # only for this connection: Errata itself was not started by spark-submit
        del os.environ[name]
    java = gateway.jvm.JavaSparkContext(gateway.jvm.org.apache.spark.SparkContext.getOrCreate())
    return SparkSession(SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf())))


if __name__ == "__main__":
    import errata
    from errata.cli.main import main
    from errata.cli.session import World

    sys.exit(main(sys.argv[1:], World(open_project=partial(errata.open, spark=_attached()))))
