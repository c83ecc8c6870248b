"""A worker asked to end (a spot machine reclaimed, a container drained) gives its chunks back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.world import PRODUCT, TRANSFORM
from support.worlds import WorldAt

pytestmark = [pytest.mark.spark]

SLOW = (
    TRANSFORM
    + """

_right = build


def build(ctx, raw):
    from pathlib import Path
    from time import sleep

    from pyspark.sql.functions import udf

    @udf("string")
    def slowly(account):
        Path("MARKER").touch()
        sleep(0 if Path("WOKEN").exists() else 3600)
        return account

    return _right(ctx, raw.withColumn("account", slowly("account")))
"""
)


@pytest.mark.slow
def test_a_worker_asked_to_end_gives_its_chunk_back_at_no_cost(world_at: WorldAt, tmp_path: Path) -> None:
    """SIGTERM while a task sleeps in Python: exit 130, neither a try nor a loss is counted, the next worker goes on."""
    marker = tmp_path / "computing"
    woken = tmp_path / "woken"
    world, run = world_at(
        "approved", days=1, transform=SLOW.replace("MARKER", str(marker)).replace("WOKEN", str(woken))
    )
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "run", run]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not marker.exists():
        assert time.monotonic() < until, "the chunk did not start"
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    with closing(sqlite3.connect(world.root / ".errata/ledger.db")) as db:
        assert db.execute("SELECT state, tries, losses FROM chunk").fetchall() == [("pending", 0, 0)]
    woken.touch()
    assert world.client.run(run, as_="ana").state == "staged"
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_a_trial_that_waits_for_spark_ends_with_ctrl_c(world_at: WorldAt, tmp_path: Path) -> None:
    """The main thread waits for Java: it says at once what happens and ends soon, without a traceback of py4j."""
    marker = tmp_path / "computing"
    slow = SLOW.replace("MARKER", str(marker)).replace("WOKEN", str(tmp_path / "woken"))
    world, _ = world_at("approved", days=1, transform=slow)
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "try", PRODUCT, world.days[0]]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not marker.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "the trial did not start"
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert "interrupted: stopping; nothing was written. Ctrl-C again ends at once" in error
    assert "Traceback" not in error
