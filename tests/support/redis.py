"""A Redis server of the tests' own: in memory, on a free port of 127.0.0.1, without a password."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

from support.postgres import free_port

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["INSTALL", "RedisServer", "find_program"]

INSTALL = "the Redis server program is missing (Debian: apt-get install --no-install-recommends redis-server)"
_LIMIT_SECONDS = 20


def find_program() -> str | None:
    """The server program, if there is one."""
    return shutil.which("redis-server")


@dataclass
class RedisServer:
    """One server."""

    process: subprocess.Popen[bytes]
    port: int
    directory: str

    @classmethod
    def start(cls) -> Self:
        """Start it and wait until it answers."""
        program = find_program()
        if program is None:
            raise FileNotFoundError(INSTALL)
        port, directory = free_port(), tempfile.mkdtemp(prefix="errata-redis-")
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        server = cls(process, port, directory)
        server._wait()
        return server

    @property
    def uri(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}/0"

    @cached_property
    def client(self) -> Redis:
        """A client of the tests."""
        from redis import Redis

        return Redis.from_url(self.uri, decode_responses=True)

    def stop(self) -> None:
        """End it and remove its directory."""
        self.client.close()
        self.process.terminate()
        self.process.wait(_LIMIT_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _wait(self) -> None:
        from redis.exceptions import ConnectionError as NotThere

        until = time.monotonic() + _LIMIT_SECONDS
        while True:
            try:
                self.client.ping()
            except NotThere:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return
