"""An Errata project with an Airflow that works on it, and the people who decide outside Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ERRATA = os.environ.get("ERRATA_PROGRAM", str(ROOT / ".venv" / "bin" / "errata"))
PYTHON = str(Path(ERRATA).parent / "python")
DAGS = HERE / "dags"
EXAMPLES = HERE.parent / "src" / "airflow" / "providers" / "errata" / "example_dags"
PEOPLE = """people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
  airflow: {roles: [operator, publisher], service: true}
"""
WRITE_DAY = """import sys
from datetime import date
from pathlib import Path
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
sys.path.insert(0, str(Path(__file__).parent))
from make_lake import LAKE, daily_of, sales_of
day = date.fromisoformat(sys.argv[1])
catalog = SqlCatalog("lake", uri=f"sqlite:///{LAKE}/catalog.db", warehouse=f"file://{LAKE}/warehouse")
table = catalog.load_table("shop.daily_sales")
rows = pa.Table.from_pylist(daily_of(day, sales_of(day)), schema=table.schema().as_arrow())
table.append(rows, snapshot_properties={"errata.live": "shop-daily"})
"""


def name_airflow(home: Path) -> dict[str, str]:
    """The environment of an Airflow at home in a folder."""
    return {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


@dataclass
class Shop:
    """The starter project of Errata with three accounts, and an Airflow that works on it as ``airflow``."""

    folder: Path
    home: Path

    def errata(self, *words: str, person: str = "bo") -> tuple[int, dict[str, Any]]:
        """Run a command as a person, outside Airflow."""
        call = [ERRATA, "-C", str(self.folder), "--json", "--as", person, *words]
        ended = subprocess.run(call, capture_output=True, text=True, check=False)
        return ended.returncode, json.loads(ended.stdout or "{}")

    @property
    def environment(self) -> dict[str, str]:
        """What Airflow's processes get."""
        connection = {
            "conn_type": "errata", "login": "airflow",
            "extra": {
                "project": str(self.folder), "program": ERRATA, "reports": str(self.home / "reports"),
                "reports_url": "http://127.0.0.1/reports", "spark_url": "http://127.0.0.1/history",
            },
        }  # fmt: skip
        return {
            **os.environ,
            **name_airflow(self.home),
            "AIRFLOW_CONN_ERRATA_DEFAULT": json.dumps(connection),
            "SHOP_DAILY_JOB": str(self.folder / "write-day"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(
        self, dag: str, date: str, conf: dict[str, str] | None = None, folder: Path = EXAMPLES, **environment: str
    ) -> Running:
        """Start a DAG by ``dag.test()`` in a process of its own."""
        given = {"requested_by": "ana", **(conf or {})}
        return start_dag(dag, date, given, folder, self.home, {**self.environment, **environment})

    def wait_for(self, state: str, seconds: float = 900) -> dict[str, Any]:
        """Wait until a run of the project is in a state; returns its line in the list."""
        return _wait(lambda: self._find_run(state), f"a run that is {state}", seconds)

    def _find_run(self, state: str) -> dict[str, Any] | None:
        _, answer = self.errata("status")
        return next((one for one in answer.get("runs", ()) if one["state"] == state), None)

    def approve(self) -> str:
        """Approve the plan that waits for it, as bo; returns its run."""
        run_id = self.wait_for("planned")["run_id"]
        digest = self.errata("show", run_id)[1]["manifest_digest"]
        assert self.errata("approve", run_id, f"--digest={digest}")[0] == 0
        return str(run_id)

    def release(self) -> None:
        """Release the candidate that waits for it, as bo."""
        run_id = self.wait_for("validated")["run_id"]
        digest = self.errata("show", run_id)[1]["release_digest"]
        assert self.errata("release", run_id, f"--digest={digest}")[0] == 0

    def find_worker(self, run_id: str, seconds: float = 600) -> int:
        """The process of ``errata run`` that computes a chunk."""

        def find() -> int | None:
            if not self.errata("status", run_id)[1]["chunks"]["running"]:
                return None
            return next((pid for pid, words in list_processes() if str(self.folder) in words and "run" in words), None)

        return _wait(find, "a worker that computes", seconds)

    def change_product(self, old: str, new: str) -> None:
        """Change a line of the product file."""
        file = self.folder / "products" / "daily_sales.yaml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")


@dataclass
class Running:
    """A DAG run in another process."""

    process: subprocess.Popen[bytes]
    result: Path
    log: Path

    def finish(self, seconds: float = 1200) -> dict[str, Any]:
        """Wait for its end; what became of its tasks."""
        self.process.wait(seconds)
        assert self.result.exists(), self.log.read_text(encoding="utf-8")[-4000:]
        return {**json.loads(self.result.read_text(encoding="utf-8")), "log": self.log.read_text(encoding="utf-8")}

    def kill(self) -> None:
        """As a machine that loses power would."""
        self.process.kill()
        self.process.wait()


def start_dag(
    dag: str, date: str, conf: dict[str, str], folder: Path, home: Path, environment: dict[str, str]
) -> Running:
    """Start a DAG by ``dag.test()`` in a process of its own."""
    result, log = home / f"{dag}-{date}.json", home / f"{dag}-{date}.log"
    result.unlink(missing_ok=True)
    call = [
        sys.executable, str(HERE / "drive.py"), dag, str(folder), "--date", f"{date}T00:00:00+00:00",
        "--conf", json.dumps(conf), "--result", str(result),
    ]  # fmt: skip
    given = {**environment, "AIRFLOW__CORE__DAGS_FOLDER": str(folder)}
    with log.open("ab") as into:
        process = subprocess.Popen(call, env=given, stdout=into, stderr=into)
    return Running(process, result, log)


def list_processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue


def _wait(find: Callable[[], Any], what: str, seconds: float) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := find()) is not None:
            return found
        time.sleep(0.5)
    raise AssertionError(f"no {what} within {seconds} s")
