"""`errata live write --report` on a real catalog: what is recorded is what `errata stale` rests on. No JVM."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.project.starter import write_starter

DAY, OTHER = "2026-01-02", "2026-01-03"
JOB = """
import sys
from datetime import date

import pyarrow as pa
from make_lake import LAKE, daily_of, sales_of
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo

day, code = date.fromisoformat(sys.argv[1]), int(sys.argv[2])
catalog = SqlCatalog("lake", uri=f"sqlite:///{LAKE}/catalog.db", warehouse=f"file://{LAKE}/warehouse")
table = catalog.load_table("shop.daily_sales")
rows = pa.Table.from_pylist(daily_of(day, sales_of(day)), schema=table.schema().as_arrow())
table.overwrite(rows, EqualTo("business_date", str(day)), snapshot_properties={"errata.live": "nightly"})
catalog.close()
sys.exit(code)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The starter project with its lake, and a job that writes one day."""
    write_starter(tmp_path)
    (tmp_path / "job.py").write_text(JOB, "utf-8")
    subprocess.run([sys.executable, "make_lake.py"], cwd=tmp_path, capture_output=True, check=True, timeout=120)
    return tmp_path


def errata(root: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    told = CliEnvironment(out=out, err=err, interactive=False, width=110)
    return main(("-C", str(root), *arguments), world=told), out.getvalue(), err.getvalue()


def write(root: Path, day: str, code: int) -> tuple[int, str]:
    lease = ("live", "write", "shop.daily_sales", "--partitions", day, "--name", "nightly", "--report", "--")
    found, _, said = errata(root, *lease, sys.executable, str(root / "job.py"), day, str(code))
    return found, said


def judge(root: Path) -> dict[str, dict[str, Any]]:
    partitions = json.loads(errata(root, "--json", "stale", "shop.daily_sales")[1])["partitions"]
    return {one["partition"]: one for one in partitions}


def test_stale_rests_on_what_a_program_reported(root: Path) -> None:
    """Until a file of its input changes; a day that nobody reported rests on times."""
    assert judge(root)[DAY]["basis"] == "time"
    assert write(root, DAY, 0)[0] == 0
    found = judge(root)
    assert (found[DAY]["state"], found[DAY]["basis"], found[OTHER]["basis"]) == ("current", "reported", "time")
    late = root / f"raw/sales/business_date={DAY}/late.parquet"
    late.write_bytes((root / f"raw/sales/business_date={DAY}/part-0.parquet").read_bytes())
    found = judge(root)
    assert (found[DAY]["state"], found[DAY]["reasons"][0]["basis"]) == ("stale", "reported")


def test_a_program_that_failed_reports_nothing(root: Path) -> None:
    """Though it committed: what it left may be a part. Its exit code is passed on."""
    code, said = write(root, DAY, 3)
    assert (code, "was not recorded: the program failed" in said) == (3, True)
    assert judge(root)[DAY]["basis"] == "time"
