"""Fixtures: an Airflow database, and a governed project for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from governed_shop import ERRATA, PEOPLE, PYTHON, WRITE_DAY, Shop, list_processes, name_airflow


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Airflow home with a migrated SQLite database."""
    home = tmp_path_factory.mktemp("airflow")
    environment = {**os.environ, **name_airflow(home)}
    airflow = str(Path(sys.executable).parent / "airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    return home


@pytest.fixture
def home(tmp_path: Path, migrated: Path) -> Path:
    """An Airflow of the test's own."""
    home = tmp_path / "airflow"
    shutil.copytree(migrated, home)
    config = home / "airflow.cfg"
    if config.exists():  # it names the folder that was copied
        config.write_text(config.read_text(encoding="utf-8").replace(str(migrated), str(home)), encoding="utf-8")
    return home


@pytest.fixture
def shop(tmp_path: Path, home: Path) -> Iterator[Shop]:
    """A starter project and its lake beside the Airflow; nothing of it runs afterwards."""
    folder = tmp_path / "shop"
    subprocess.run([ERRATA, "init", str(folder)], check=True, capture_output=True)
    subprocess.run([PYTHON, "make_lake.py"], cwd=folder, check=True, capture_output=True)
    settings = folder / "errata.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("people: single-user\n", PEOPLE), encoding="utf-8")
    (folder / "write_day.py").write_text(WRITE_DAY, encoding="utf-8")
    job = folder / "write-day"
    job.write_text(f'#!/bin/sh\nexec {PYTHON} {folder}/write_day.py "$1"\n', encoding="utf-8")
    job.chmod(0o755)
    yield Shop(folder, home)
    for pid, words in list_processes():
        if any(str(tmp_path) in word for word in words) and pid != os.getpid():
            os.kill(pid, 9)
