"""Tasks in a real Airflow with an Errata that does not answer: the daily pipeline comes first, nothing is guessed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from governed_shop import DAGS, name_airflow, start_dag

pytestmark = [pytest.mark.slow]

DOWN = {"error": {"code": "engine", "message": "the ledger does not answer", "retryable": True}}
UNKNOWN = {"error": {"code": "not-found", "message": "there is no run bf-x", "retryable": False}}
PLANNED = {"run_id": "bf-x", "state": "planned", "next": "errata approve bf-x"}


def write_program(place: Path, body: str) -> str:
    """A program in place of Errata."""
    program = place / "errata"
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    connection = {"conn_type": "errata", "extra": {"project": str(place), "program": str(program)}}
    return json.dumps(connection)


def test_a_live_job_is_delayed_by_its_limit_at_most_while_the_ledger_is_down(home: Path, tmp_path: Path):
    """The job that comes first writes without a lease when its limit is over; the other one fails, unwritten."""
    down = write_program(tmp_path, f"import sys\nprint({json.dumps(DOWN)!r})\nsys.exit(1)")
    environment = {**os.environ, **name_airflow(home), "AIRFLOW_CONN_ERRATA_DEFAULT": down, "LIMIT": "6"}
    found = start_dag("slow_errata_daily", "2026-02-01", {}, DAGS, home, environment).finish(300)
    assert found["tasks"] == {"write": "success", "write_or_fail": "failed"}
    assert 6 <= found["seconds"]["write"] < 40
    assert found["xcoms"]["write.return_value"] == "written"
    assert "write_or_fail.return_value" not in found["xcoms"]
    assert "nothing was written within 0:00:06" in found["log"]


def test_a_run_that_cannot_be_read_any_more_fails_its_tasks(home: Path, tmp_path: Path):
    """It is not taken for one that was approved or computed."""
    body = f"""import json, sys
with open({str(tmp_path / "asked")!r}, "a+") as asked:
    asked.write(sys.argv[-1] + "\\n")
    asked.seek(0)
    times = asked.read().split().count(sys.argv[-1])
known = times <= {{"bf-1": 1, "bf-2": 2}}[sys.argv[-1]]
print(json.dumps({PLANNED!r} if known else {UNKNOWN!r}))
sys.exit(0 if known else 2)"""
    environment = {**os.environ, **name_airflow(home), "AIRFLOW_CONN_ERRATA_DEFAULT": write_program(tmp_path, body)}
    found = start_dag("slow_errata_waits", "2026-02-01", {}, DAGS, home, environment).finish(300)
    assert found["tasks"] == {"approved": "failed", "run": "failed"}
    assert found["log"].count("there is no run bf-") >= 2
    asked = (tmp_path / "asked").read_text().split()
    assert (asked.count("bf-1"), asked.count("bf-2")) == (2, 3), "it was not the trigger that found out"
