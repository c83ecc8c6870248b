"""Spans of a command: sent where the environment says so, and nothing is loaded where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from errata.project.starter import write_starter
from support.http_receiver import HttpReceiver

TRACE, SPAN = "ab" * 16, "cd" * 8


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project without a lake."""
    root = tmp_path / "shop"
    root.mkdir()
    write_starter(root)
    return root


def run_errata(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "errata", "-C", str(root), *words]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


def test_spans_of_a_command_are_sent_as_children_of_the_callers(shop: Path):
    """By OTLP over HTTP; a failed step has the code of its error and not what it says."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason='pip install "errata[otel]"')
    with HttpReceiver() as receiver:
        done = run_errata(
            shop, "plan", "shop.daily_sales", "--partitions", "2026-01-07", "--reason", "c4nary-reason",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, TRACEPARENT=f"00-{TRACE}-{SPAN}-01",
        )  # fmt: skip
    assert done.returncode != 0, "there is no table to plan for"
    posts = [post for post in receiver.posts if post.path == "/v1/traces"]
    sent = b"".join(post.body for post in posts)
    assert b"errata plan" in sent
    assert sent.count(bytes.fromhex(TRACE)) == 2, "the command and its plan"
    assert bytes.fromhex(SPAN) in sent
    assert b"c4nary" not in sent


def test_a_command_without_an_exporter_loads_no_tracing(shop: Path):
    """Nor the client of Prometheus."""
    program = (
        "import sys; from errata.cli.main import main; main(['status']); "
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus_client'))])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=shop, env=clean, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
