"""Loaded by every Python process of an orchestrator under test: keeps it on this machine, and notes what it tried."""

import os
import sys
from pathlib import Path

LOOPBACK = ("127.", "localhost", "::1")


def _stay_here(event: str, arguments: tuple[object, ...]) -> None:
    if event not in ("socket.connect", "socket.bind"):
        return
    address = arguments[1]
    if isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK):
        with Path(os.environ["ERRATA_GUARD"]).open("a", encoding="utf-8") as file:
            file.write(f"{event} {address[0]}:{address[1]} by {sys.argv}\n")
        raise OSError(f"{event} to {address[0]} was refused by the tests")


sys.addaudithook(_stay_here)
