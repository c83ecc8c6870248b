"""Health signals read from real commands, a real HTTP server and a query."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from errata.engines.hooks.probes import SignalProbes
from errata.errors import EngineError
from errata.model.product.throttle import Signal


class Answers(BaseHTTPRequestHandler):
    """/lag answers JSON, /down 503, anything else 200."""

    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/down" else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"live": {"lag_seconds": 42.5}}).encode() if self.path == "/lag" else b"ok")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def probes(tmp_path: Path) -> SignalProbes:
    return SignalProbes(tmp_path, {"ledger": lambda query: 7 if query == "SELECT 7" else "many"})


def test_a_field_of_an_answer_is_a_number(probes: SignalProbes, address: str) -> None:
    """Dots lead into nested objects."""
    signal = Signal("lag", "http", (f"{address}/lag",), field="live.lag_seconds")
    assert probes.read(signal) == Decimal("42.5")


def test_an_address_without_a_field_is_good_or_bad(probes: SignalProbes, address: str) -> None:
    """0 for a good status, 1 for a bad one."""
    assert probes.read(Signal("up", "http", (f"{address}/up",))) == 0
    assert probes.read(Signal("down", "http", (f"{address}/down",))) == 1


@pytest.mark.parametrize("path", ["/down", "/up"])
def test_an_answer_without_its_field_cannot_be_read(probes: SignalProbes, address: str, path: str) -> None:
    """The error names the signal."""
    with pytest.raises(EngineError, match="health signal lag cannot be read"):
        probes.read(Signal("lag", "http", (f"{address}{path}",), field="lag"))


def test_nobody_there_cannot_be_read(probes: SignalProbes) -> None:
    """A refused connection is an unreadable signal and not a crash."""
    with pytest.raises(EngineError, match="cannot be read"):
        probes.read(Signal("gone", "http", ("http://127.0.0.1:9/",), timeout_seconds=1))


def test_a_command_prints_its_number_last(probes: SignalProbes) -> None:
    """The last word of its output counts; it runs in the project."""
    code = "import os; print('lag of', os.path.basename(os.getcwd()), 'is', 12)"
    assert probes.read(Signal("queue", "command", (sys.executable, "-c", code))) == 12


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "print('soon')", "import time; time.sleep(9)", "print('nan')"])
def test_a_command_that_fails_or_says_no_number_cannot_be_read(probes: SignalProbes, code: str) -> None:
    """Exit code, words and time-outs are told."""
    with pytest.raises(EngineError, match="queue cannot be read"):
        probes.read(Signal("queue", "command", (sys.executable, "-c", code), timeout_seconds=1))


def test_a_query_gives_its_first_value(probes: SignalProbes) -> None:
    """A number, or it cannot be read."""
    assert probes.read(Signal("rows", "sql", ("SELECT 7",))) == 7
    with pytest.raises(EngineError, match="expected a number"):
        probes.read(Signal("rows", "sql", ("SELECT 'many'",)))


@pytest.mark.parametrize("path", ["me:hunter2@127.0.0.1/lag", "127.0.0.1:9/a b?token=hunter2"])
def test_an_address_that_cannot_be_asked_is_not_quoted(probes: SignalProbes, path: str) -> None:
    """It may hold a password or a token, and the error goes to the log."""
    with pytest.raises(EngineError, match="lag cannot be read") as failed:
        probes.read(Signal("lag", "http", (f"http://{path}",), timeout_seconds=1))
    assert "hunter2" not in failed.value.message


@pytest.mark.parametrize("kind, source", [("command", "import sys; sys.stdout.buffer.write(b'\\xff 1')"), ("sql", "x")])
def test_whatever_goes_wrong_is_an_unreadable_signal(tmp_path: Path, kind: str, source: str) -> None:
    """Output that is no text, a query that fails in the engine's own way."""

    def broken(_: str) -> object:
        raise RuntimeError("AnalysisException")

    command = (sys.executable, "-c", source) if kind == "command" else (source,)
    with pytest.raises(EngineError, match="lag cannot be read"):
        SignalProbes(tmp_path, {"ledger": broken}).read(Signal("lag", kind, command))
