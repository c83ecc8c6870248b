"""A Snowflake emulator of the tests' own: fakesnow, in memory, on a free port of 127.0.0.1.

It comes from its own environment, because it needs an older sqlglot than Errata's lock has.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.request import Request, urlopen

from support.postgres import free_port

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection

__all__ = ["INSTALL", "FakeSnowflake", "find_program"]

INSTALL = "the Snowflake emulator is missing (make setup-fakesnow)"
_ROOT = Path(__file__).resolve().parents[2]
_PYTHON = _ROOT / ".tools" / "fakesnow" / "bin" / "python"
_SERVER = _ROOT / "src" / "errata" / "testing" / "copies" / "fakesnow_server.py"
_LIMIT_SECONDS = 60
# the connector asks the metadata services of three clouds where it runs; none of them is there
_QUIET = {"SNOWFLAKE_DISABLE_PLATFORM_DETECTION": "true"}


def find_program() -> Path | None:
    """The Python that has the emulator, if it is installed."""
    return _PYTHON if _PYTHON.exists() else None


@dataclass
class FakeSnowflake:
    """One server; each test makes its own databases."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @classmethod
    def start(cls) -> Self:
        """Start it and wait until it answers."""
        program = find_program()
        if program is None:
            raise FileNotFoundError(INSTALL)
        os.environ.update(_QUIET)
        port = free_port()
        log = Path(tempfile.mkdtemp(prefix="errata-fakesnow-")) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(program), str(_SERVER), str(port)],
                cwd=log.parent, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=os.environ | {"PYTHONPATH": ""},
            )  # fmt: skip
        server = cls(process, port, log)
        server._wait()
        return server

    @property
    def options(self) -> dict[str, Any]:
        """How the connector reaches it."""
        return {
            "account": "fakesnow", "user": "errata", "password": "none", "host": "127.0.0.1", "port": self.port,
            "protocol": "http", "network_timeout": 15, "login_timeout": 15,
        }  # fmt: skip

    @contextmanager
    def connect(self, **more: Any) -> Iterator[SnowflakeConnection]:
        """A connection of the tests."""
        from snowflake import connector

        with connector.connect(**(self.options | more)) as conn:
            yield conn

    def execute(self, *statements: str, **more: Any) -> list[Any]:
        """Run statements, each in its own transaction; the rows of the last one."""
        rows: list[Any] = []
        with self.connect(**more) as conn:
            for statement in statements:
                rows = conn.cursor().execute(statement).fetchall()
        return rows

    def end_transactions(self) -> int:
        """Roll back what clients that are gone left open, as Snowflake does after some minutes; returns how many."""
        request = Request(f"http://127.0.0.1:{self.port}/end-transactions", method="POST")
        with urlopen(request, timeout=_LIMIT_SECONDS) as answer:  # noqa: S310 - the server above
            return int(json.load(answer)["ended"])

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(_LIMIT_SECONDS)

    def _wait(self) -> None:
        import socket

        until = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the Snowflake emulator did not start:\n{self.log.read_text()[-2000:]}")
