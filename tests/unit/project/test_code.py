from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from errata.project.code import compute_lock_digest, read_git_state, zip_code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (
        "transforms/__init__.py",
        "transforms/daily.py",
        "lib/deep/er.py",
        "make_lake.py",
        "tests/test_daily.py",
        "transforms/__pycache__/daily.py",
        ".errata/left.py",
        ".venv/lib/site.py",
        "environment/lib/site.py",
        "notes.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n", encoding="utf-8")
    (root / "environment" / "pyvenv.cfg").touch()
    return root


def run_git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)


def test_the_zip_holds_the_projects_python_and_nothing_else(project: Path):
    """Environments, hidden folders, caches, tests and other files stay out."""
    content, digest = zip_code(project)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        assert files == ["lib/deep/er.py", "make_lake.py", "transforms/__init__.py", "transforms/daily.py"]
        assert {"lib/", "lib/deep/", "transforms/"} <= set(archive.namelist()), "packages without __init__ need them"
        assert archive.read("transforms/daily.py") == b"# transforms/daily.py\n"
    assert digest == hashlib.sha256(content).hexdigest()


def test_the_zip_of_a_query_holds_its_file_alone(project: Path):
    """Another file of the project changes neither the zip nor whether it differs from the commit."""
    (project / "transforms/daily.sql").write_text("SELECT 1 AS n", encoding="utf-8")
    content, digest = zip_code(project, "transforms/daily.sql")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["transforms/", "transforms/daily.sql"]
    python = zip_code(project)
    run_git(project, "init")
    run_git(project, "add", "-A")
    run_git(project, "commit", "-m", "x")
    (project / "make_lake.py").write_text("# changed\n", encoding="utf-8")
    assert zip_code(project, "transforms/daily.sql") == (content, digest)
    assert [read_git_state(project, sql)[1] for sql in (None, "transforms/daily.sql")] == [True, False]
    (project / "transforms/daily.sql").write_text("SELECT 2 AS n", encoding="utf-8")
    assert zip_code(project, "transforms/daily.sql")[1] != digest
    assert read_git_state(project, "transforms/daily.sql")[1]
    (project / "make_lake.py").write_text("# make_lake.py\n", encoding="utf-8")
    assert zip_code(project) == python, "a query is no part of the Python code"
    assert not read_git_state(project)[1]


def test_the_zip_depends_on_names_and_contents_only(project: Path, tmp_path: Path):
    """Two copies with other times and permissions give the same bytes."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(project, copy)
    for path in copy.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o755)
    assert zip_code(copy) == zip_code(project)
    (copy / "make_lake.py").write_text("# changed\n", encoding="utf-8")
    assert zip_code(copy)[1] != zip_code(project)[1]


def test_a_renamed_file_is_other_code(project: Path):
    """Names count, because imports go by them."""
    before = zip_code(project)[1]
    (project / "make_lake.py").rename(project / "make_pond.py")
    assert zip_code(project)[1] != before


def test_without_a_repository_there_is_no_git_state(project: Path):
    """No git is an answer, not an error."""
    assert read_git_state(project) == (None, False)


def test_git_state_is_that_of_the_project_directory(project: Path):
    """Changes beside the project do not make it dirty, changes in it do; `.errata` never does."""
    top = project.parent
    run_git(top, "init", "-q")
    assert read_git_state(project) == (None, True)
    run_git(top, "add", "project")
    run_git(top, "commit", "-qm", "one")
    commit, dirty = read_git_state(project)
    assert commit is not None
    assert len(commit) == 40
    assert not dirty
    (top / "beside.py").touch()
    (project / ".errata" / "ledger.db").touch()
    assert read_git_state(project) == (commit, False)
    (project / "transforms" / "new.py").touch()
    assert read_git_state(project) == (commit, True)


SEALED = (
    "transforms/daily.py", "lib/deep/er.py", "errata.yaml", "products/a.yaml", "uv.lock", "requirements/dev.lock",
)  # fmt: skip
NOT_SEALED = (
    ".errata/catalog.db", "lake/catalog.db", "lake/catalog.db-wal", "lake/warehouse/fin.db/sales/data/a.parquet",
    "lake/warehouse/products/a.yaml", "ledger.db", "raw/day=2026-01-01/part-0.parquet", "tests/test_daily.py",
    "environment/lib/site.py", "notes.txt", "products/old/a.yaml",
)  # fmt: skip


@pytest.mark.parametrize("committed", [True, False], ids=["tracked", "untracked"])
@pytest.mark.parametrize("is_top", [True, False], ids=["the whole repository", "a folder of it"])
@pytest.mark.parametrize("name", [*SEALED, *NOT_SEALED])
def test_only_what_a_plan_seals_makes_the_tree_dirty(project: Path, name: str, committed: bool, is_top: bool):
    """Code, project files and locks do; ledger, catalog, warehouse and raw data inside the project never do."""
    top = project if is_top else project.parent
    place = project / name
    place.unlink(missing_ok=True)
    if committed:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("before\n", encoding="utf-8")
    run_git(top, "init", "-q")
    run_git(top, "add", "-f", ".")
    run_git(top, "commit", "-qm", "one")
    assert not read_git_state(project)[1]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("after\n", encoding="utf-8")
    assert read_git_state(project)[1] == (name in SEALED)
    run_git(top, "add", "-f", ".")
    assert read_git_state(project)[1] == (name in SEALED)


def test_code_that_was_renamed_or_deleted_makes_the_tree_dirty(project: Path):
    """Imports go by names."""
    run_git(project, "init", "-q")
    run_git(project, "add", ".")
    run_git(project, "commit", "-qm", "one")
    run_git(project, "mv", "make_lake.py", "make_lake.txt")
    assert read_git_state(project)[1]
    run_git(project, "reset", "-q", "--hard")
    assert not read_git_state(project)[1]
    run_git(project, "rm", "-q", "lib/deep/er.py")
    assert read_git_state(project)[1]


def test_a_directory_that_git_ignores_has_no_git_state(project: Path):
    """The commit around it says nothing about its code."""
    run_git(project.parent, "init", "-q")
    (project.parent / ".gitignore").write_text("project/\n", encoding="utf-8")
    run_git(project.parent, "add", ".gitignore")
    run_git(project.parent, "commit", "-qm", "one")
    assert read_git_state(project) == (None, False)


def test_hooks_variables_do_not_mislead_git(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """GIT_DIR of another repository is not asked."""
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert read_git_state(project) == (None, False)


def test_the_lock_of_the_project_comes_before_that_of_its_repository(project: Path):
    """The digest follows the lock's content; no lock, no digest."""
    assert compute_lock_digest(project) is None
    run_git(project.parent, "init", "-q")
    (project.parent / "uv.lock").write_text("a==1\n", encoding="utf-8")
    outer = compute_lock_digest(project)
    (project / "requirements.txt").write_text("a==2\n", encoding="utf-8")
    inner = compute_lock_digest(project)
    assert outer is not None
    assert inner is not None
    assert inner != outer
    (project / "requirements.txt").write_text("a==3\n", encoding="utf-8")
    assert compute_lock_digest(project) not in (inner, outer)
