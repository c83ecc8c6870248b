from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import errata
from errata.engines.iceberg.metadata.tables import IcebergMetadata, TableLoader
from errata.errors import UsageError
from errata.project import load_project
from errata.project.check import check_project
from errata.project.starter import EMPTY_FILES, STARTER_FILES, name_project, write_starter


def test_the_starter_project_makes_its_lake_and_checks_clean(tmp_path: Path):
    """What `errata init` writes runs as it is: lake, files, table, columns and transform agree."""
    assert write_starter(tmp_path / "new" / "project") == tuple(STARTER_FILES)
    root = tmp_path / "new" / "project"
    subprocess.run([sys.executable, "make_lake.py"], cwd=root, check=True, capture_output=True)
    project = load_project(root, environ={})
    assert check_project(project, IcebergMetadata(TableLoader(project.catalogs))) == ()
    days = sorted(path.name for path in (root / "raw" / "sales").iterdir())
    assert (len(days), days[0], days[-1]) == (14, "business_date=2026-01-01", "business_date=2026-01-14")
    again = subprocess.run([sys.executable, "make_lake.py"], cwd=root, check=False, capture_output=True)
    assert again.returncode == 1


@pytest.mark.parametrize("empty", [False, True])
def test_a_new_project_is_named_after_its_directory(tmp_path: Path, empty: bool):
    """`errata init shop` makes the project shop; with --empty it has no product, and loads."""
    files = write_starter(tmp_path / "shop", empty=empty)
    project = load_project(tmp_path / "shop", environ={})
    assert project.name == "shop"
    assert list(project.products) == ([] if empty else ["shop.daily_sales"])
    assert files == tuple(EMPTY_FILES if empty else STARTER_FILES)


@given(st.text(max_size=80))
def test_any_directory_gives_a_valid_name(name: str):
    """Spaces, other scripts and leading digits do not make a project file that cannot be loaded."""
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", name_project(name))


@pytest.mark.parametrize("empty", [False, True])
def test_doctor_finds_nothing_wrong_with_a_new_project(tmp_path: Path, empty: bool):
    """Ledger and lake of a new project are not there yet; hints name what creates them, and doctor creates neither."""
    write_starter(tmp_path, empty=empty)
    with errata.open(str(tmp_path)) as client:
        ledger, *waiting = [check for check in client.doctor() if check.waiting]
        lake = [check for check in client.doctor() if check.name.startswith(("catalog", "table", "refs"))]
    assert (ledger.name, ledger.found) == ("ledger", f"there is no ledger yet at {tmp_path}/.errata/ledger.db")
    assert not (tmp_path / ".errata/ledger.db").exists()
    assert lake == waiting
    assert [(check.name, check.ok) for check in waiting] == [("catalog lake", True)]
    assert waiting[0].found == f"no {tmp_path}/lake/catalog.db yet"
    assert ("Spark job" if empty else "make_lake.py") in str(waiting[0].hint)


def test_nothing_is_overwritten(tmp_path: Path):
    """Every file in the way is named, and nothing is written."""
    (tmp_path / "README.md").write_text("mine\n", encoding="utf-8")
    (tmp_path / "errata.yaml").write_text("mine\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"found errata\.yaml, README\.md") as refused:
        write_starter(tmp_path)
    assert refused.value.fields["files"] == ["errata.yaml", "README.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "errata.yaml"]
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine\n"


def test_a_file_is_not_a_place_for_a_project(tmp_path: Path):
    """The target must be a directory, or not there yet."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="expected a directory"):
        write_starter(tmp_path / "file")
