"""The test files of a lane, and a record of what ran on it.

``python tests/support/lanes.py files`` prints the files of ``tests/lanes.toml``. With ``--record=DIRECTORY`` each
pytest process writes there what it ran, and ``python tests/support/lanes.py join DIRECTORY`` puts that into
``docs/reference/tested-versions.json``, under the Spark it ran on. Only what passed is counted.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TESTED = ROOT / "docs/reference/tested-versions.json"

__all__ = ["ROOT", "TESTED", "Recorder", "add_recorder", "join_records", "load_lane_files"]


def load_lane_files() -> dict[str, list[str]]:
    """Test files by what they show."""
    return tomllib.loads((ROOT / "tests/lanes.toml").read_text("utf-8"))


class Recorder:
    """Counts outcomes by file, and by catalog where a test says which one it runs on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files: dict[str, Counter[str]] = {}
        self.catalogs: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: its call, or a set-up that skipped or failed."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            counts = self.files.setdefault(report.nodeid.partition("::")[0], Counter())
            counts[report.outcome] += 1
            if report.passed and (name := _find_catalog(report.nodeid)):
                self.catalogs[name] += 1

    def pytest_sessionfinish(self) -> None:
        """Write what this process ran."""
        found = {"versions": read_versions(), "files": self.files, "catalogs": self.catalogs}
        (self.directory / f"{os.getpid()}.json").write_text(json.dumps(found), "utf-8")


def _find_catalog(test: str) -> str | None:
    """The catalog that a test of ``tests/catalogs`` names in its parameters; others on Spark use SQLite."""
    if "/s3" in test or "test_s3" in test:
        return "jdbc on SQLite, files on S3 (moto)"
    if test.startswith("tests/catalogs"):
        parameters = test.partition("[")[2]
        return {"postgres": "jdbc on PostgreSQL", "rest": "rest"}.get(parameters.rstrip("]").split("-")[0])
    return "jdbc on SQLite" if test.startswith(("tests/spark", "tests/crash", "tests/contract")) else None


def add_recorder(config: pytest.Config) -> None:
    """Record what runs, if ``--record`` asks for it."""
    if directory := config.getoption("--record"):
        config.pluginmanager.register(Recorder(directory), "lane-recorder")


def read_versions() -> dict[str, str]:
    """What this environment consists of."""
    from errata.engines.spark.runtime.jvm import java_version
    from errata.jars import find_sealed_lane, list_jars
    from support.postgres import server_programs

    found = {
        "Spark": version("pyspark"),
        "Iceberg": (find_sealed_lane(jar.coordinate for jar in list_jars()) or ("", ""))[1],
        "PyIceberg": version("pyiceberg"),
        "Python": platform.python_version(),
        "Java": str(java_version()),
    }
    if programs := server_programs():
        told = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)
        found["PostgreSQL"] = told.stdout.split()[2]
    return found


def join_records(directory: Path) -> dict[str, Any]:
    """All records of a run as one; raises if they are of different environments or a test failed."""
    records = [json.loads(path.read_text("utf-8")) for path in sorted(directory.glob("*.json"))]
    if not records or any(record["versions"] != records[0]["versions"] for record in records):
        raise ValueError(f"expected records of one environment in {directory}")
    files: dict[str, Counter[str]] = {}
    catalogs: Counter[str] = Counter()
    for record in records:
        catalogs.update(record["catalogs"])
        for name, counts in record["files"].items():
            files.setdefault(name, Counter()).update(counts)
    if failed := [name for name, counts in files.items() if counts["failed"]]:
        raise ValueError(f"tests failed, and only what passed is recorded: {', '.join(failed)}")
    parts = {}
    for part, names in load_lane_files().items():
        total = sum((files.get(name, Counter()) for name in names), Counter())
        parts[part] = {"passed": total["passed"], "skipped": total["skipped"]}
    return {"versions": records[0]["versions"], "catalogs": dict(sorted(catalogs.items())), "parts": parts}


def _main(arguments: list[str]) -> None:
    if arguments == ["files"]:
        sys.stdout.write("\n".join(name for names in load_lane_files().values() for name in names) + "\n")
        return
    known = json.loads(TESTED.read_text("utf-8")) if TESTED.exists() else {}
    joined = join_records(Path(arguments[1]))
    known[".".join(joined["versions"]["Spark"].split(".")[:2])] = joined
    TESTED.write_text(json.dumps(dict(sorted(known.items(), reverse=True)), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
