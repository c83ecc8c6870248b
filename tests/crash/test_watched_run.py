"""A run with two workers, one of them killed, watched by a real Prometheus and written to one log."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from errata import logs
from errata.monitoring.metrics import METRICS
from support.attached import Attached, start
from support.prometheus import need, serve_prometheus
from support.world import World
from support.worlds import WorldAt

pytestmark = [pytest.mark.spark]
LOG = "logging: {file: logs/errata.jsonl}\n"
WORKER = ("run_id", "chunk_id", "source_range", "transform_version", "target", "processing_mode", "attempt", "trace_id")


@pytest.mark.slow
def test_prometheus_sees_every_metric_of_a_run_whose_worker_was_killed(world_at: WorldAt, tmp_path: Path) -> None:
    """Values stay when the worker dies, a lost attempt shows, and one search finds the lines of both workers."""
    need("prometheus")
    world, run = world_at("approved", days=4, chunk_bytes="1", project=LOG)
    try:
        with world.client.serve_metrics("127.0.0.1:0") as at, serve_prometheus(at, tmp_path) as server:
            first = _work(world, run, "stage.before_commit=kill@2")
            _, said = first.communicate()
            assert first.returncode == -signal.SIGKILL, said
            server.wait_for(f'errata_chunks_completed_total{{run="{run}"}} == 1')
            server.wait_for('errata_leases{kind="chunk"} == 1')
            second = _work(world, run)
            _, said = second.communicate()
            assert second.returncode == 0, said
            world.client.validate(run, as_="ana")
            world.client.publish(run, as_="bo")
            server.wait_for(f'errata_run_state{{run="{run}",state="published"}}')
            server.wait_for(f'errata_attempts_lost_total{{run="{run}"}} == 1')
            assert server.query(f'errata_waves{{run="{run}",state="visible"}} == 1')
            for metric in METRICS:
                if metric.also:
                    assert server.wait_for(f'{metric.also}{{run="{run}"}}'), metric.also
            assert server.query(f'backfill_chunks_completed_total{{run="{run}"}}')[0]["value"][1] == "4"
            assert float(server.query(f'backfill_input_records_total{{run="{run}"}}')[0]["value"][1]) > 0
            assert float(server.query(f'backfill_sink_write_latency_ms{{run="{run}"}}')[0]["value"][1]) > 0
    finally:
        logs.stop()
    text = (world.root / "logs" / "errata.jsonl").read_text("ascii")
    found = [json.loads(line) for line in text.splitlines() if run in line]
    started = [line for line in found if line["event"] == "attempt.started"]
    assert len(started) == 5
    assert len({line["process"] for line in started}) == 2
    assert os.getpid() not in {line["process"] for line in started}
    for line in found:
        if line["event"] in ("attempt.started", "chunk.adopted"):
            assert all(line[name] for name in WORKER), line


def _work(world: World, run: str, failpoints: str = "") -> Attached:
    words = ("-C", str(world.root), "--as", "ana", "run", run, "--parallel", "1")
    return start(world.spark, *words, ERRATA_FAILPOINTS=failpoints)
