"""A moto server on 127.0.0.1: S3 in the memory of a process of its own, gone when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from support.postgres import free_port

__all__ = ["MotoServer"]

_LIMIT_SECONDS = 60
KEY, SECRET, REGION = "canary-access-key-id", "canary-secret-access-key", "us-east-1"


@dataclass(frozen=True)
class MotoServer:
    """One server; any pair of keys is as good as another."""

    endpoint: str

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[MotoServer]:
        """A server, until the block ends."""
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        server = cls(f"http://127.0.0.1:{port}")
        try:
            server._wait(process)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=20)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _LIMIT_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"{self.endpoint}/moto-api/data.json", timeout=5).close()  # noqa: S310
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"moto did not start (exit code {process.poll()})") from None
                time.sleep(0.1)
            else:
                return

    def client(self) -> Any:
        """A boto3 client of its S3: the tests' own hands."""
        import boto3

        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET
        )
