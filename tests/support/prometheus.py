"""Prometheus of the tests' own: its programs, a server on 127.0.0.1, and tests of rules on given metrics."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from support.postgres import free_port

__all__ = ["RULES", "PrometheusServer", "check_alerts", "need", "serve_prometheus"]

INSTALL = "the programs of Prometheus are missing (Debian: apt-get install --no-install-recommends prometheus)"
RULES = Path(__file__).parents[2] / "ops" / "errata-rules.yml"
_HOURS = 3
"""How long the metrics of a test have been as they are when alerts are looked at."""


def need(program: str) -> str:
    """The path of a program; skips the test if it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(INSTALL)
    return found


def check_alerts(cases: Mapping[str, tuple[str, Sequence[str]]], now: float, place: Path) -> None:
    """Fail unless exactly the alerts of each case fire: its metrics as text, and the names of the alerts.

    promtool's clock begins in 1970, so times in metrics are moved there.
    """
    tests = [_build_case(name, text, alerts, now) for name, (text, alerts) in cases.items()]
    # JSON is YAML
    file = place / "rules-test.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(
        [need("promtool"), "test", "rules", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _build_case(name: str, text: str, alerts: Sequence[str], now: float) -> dict[str, Any]:
    firing = [
        {
            "expr": f'count by (alertname) (ALERTS{{alertstate="firing",alertname="{alert}"}}) > bool 0',
            "eval_time": f"{_HOURS}h",
            "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}],
        }
        for alert in alerts
    ]
    others = "|".join(alerts) or "none"
    silent = {
        "expr": f'count by (alertname) (ALERTS{{alertstate="firing",alertname!~"{others}"}})',
        "eval_time": f"{_HOURS}h",
        "exp_samples": [],
    }
    series = list(_list_series(text, now))
    return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [*firing, silent]}


def _list_series(text: str, now: float) -> Iterator[dict[str, str]]:
    from prometheus_client.parser import text_string_to_metric_families

    minutes = _HOURS * 60
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={json.dumps(value)}" for name, value in sample.labels.items())
            value = sample.value
            if sample.name.endswith("_timestamp_seconds"):
                value += minutes * 60 - now
            yield {"series": f"{sample.name}{{{labels}}}", "values": f"{value:f}x{minutes + 5}"}


@dataclass(frozen=True)
class PrometheusServer:
    """A running server."""

    address: str

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The series that an expression gives now."""
        return list(self._get(f"query?query={quote(expr)}")["result"])

    def wait_for(self, expr: str, seconds: float = 30) -> list[dict[str, Any]]:
        """The series of an expression as soon as there are any."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := self.query(expr):
                return found
            time.sleep(0.3)
        raise AssertionError(f"{expr} has no value after {seconds} s")

    def _get(self, path: str) -> dict[str, Any]:
        with urlopen(f"http://{self.address}/api/v1/{path}", timeout=10) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return dict(told["data"])


@contextmanager
def serve_prometheus(target: str, place: Path) -> Iterator[PrometheusServer]:
    """A server that scrapes the target every second and knows our rules."""
    program, address = need("prometheus"), f"127.0.0.1:{free_port()}"
    job = {"job_name": "errata", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    settings = {"global": {"evaluation_interval": "1s"}, "scrape_configs": [job], "rule_files": [str(RULES)]}
    (place / "prometheus.json").write_text(json.dumps(settings))
    with (place / "prometheus.log").open("w") as log:
        server = subprocess.Popen(
            [
                program, f"--config.file={place / 'prometheus.json'}", f"--web.listen-address={address}",
                f"--storage.tsdb.path={place / 'tsdb'}", "--log.level=warn",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _wait_until_ready(address, server)
        yield PrometheusServer(address)
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_until_ready(address: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert server.poll() is None, "Prometheus ended at once"
        try:
            with urlopen(f"http://{address}/-/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("Prometheus is not ready after 30 s")
