"""A real Spark standalone cluster on 127.0.0.1, from the installed pyspark: one master, some workers, all killable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from support.postgres import free_port

HOME = Path(pyspark.__file__).parent
_LIMIT_SECONDS = 300
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment() -> dict[str, str]:
    """What daemons and drivers are started with: this Spark, this Python, the loopback address, nothing submitted."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "SPARK_"))}
    return clean | {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


@dataclass
class Cluster:
    """Master and workers; executors are their grandchildren."""

    directory: Path
    port: int = field(default_factory=free_port)
    ui: int = field(default_factory=free_port)
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int, cores: int) -> None:
        common = ("--host", "127.0.0.1")
        self._daemon("master.Master", *common, "--port", str(self.port), "--webui-port", str(self.ui))
        until(lambda: self.state() is not None, "the master to answer")
        for n in range(workers):
            size = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(self.directory / f"work{n}"))
            self._daemon("worker.Worker", *common, "--webui-port", str(free_port()), *size, self.url)
        until(lambda: self.alive() == workers, f"{workers} workers")

    def _daemon(self, kind: str, *arguments: str) -> None:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        own = {"SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_MEMORY": "192m", "SPARK_DAEMON_JAVA_OPTS": _JAVA}
        with (self.directory / f"{kind}-{len(self.daemons)}.log").open("wb") as log:
            daemon = subprocess.Popen(command, env=environment() | own, stdout=log, stderr=log, start_new_session=True)
        self.daemons.append(daemon)

    def state(self) -> dict[str, Any] | None:
        """What the master says of itself; None when it does not answer."""
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.ui}/json/", timeout=5) as answer,
        ):
            found: dict[str, Any] = json.load(answer)
            return found
        return None

    def alive(self) -> int:
        return sum(worker["state"] == "ALIVE" for worker in (self.state() or {}).get("workers", ()))

    def applications(self) -> list[dict[str, Any]]:
        """Running applications, with the cores they hold and the most they asked for."""
        found: list[dict[str, Any]] = (self.state() or {}).get("activeapps", [])
        return found

    def executors(self) -> list[int]:
        """Process ids of the executors: children of the workers."""
        workers = {daemon.pid for daemon in self.daemons[1:]}
        return [pid for pid, parent, line in processes() if parent in workers and "ExecutorBackend" in line]

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            with suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()


@contextmanager
def cluster(directory: Path, *, workers: int = 2, cores: int = 2) -> Iterator[Cluster]:
    """Started, and gone afterwards with everything it started."""
    directory.mkdir(parents=True, exist_ok=True)
    found = Cluster(directory)
    try:
        found.start(workers, cores)
        yield found
    finally:
        found.stop()


def processes() -> Iterator[tuple[int, int, str]]:
    """Every process of this machine with its parent and its command line."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
            yield int(place.name), int(parent), line


def until(condition: Callable[[], bool], wanted: str, seconds: float = _LIMIT_SECONDS) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {wanted}"
        time.sleep(0.2)
