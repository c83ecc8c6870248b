"""The locks: one environment serves users and developers, and no lock says where packages come from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def pins(name: str) -> set[str]:
    """The packages of a lock with version and condition."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return {line.rstrip(" \\") for line in text.splitlines() if re.match(r"\w", line)}


def test_a_developer_has_every_package_of_a_user_in_the_same_version() -> None:
    """`make setup` after `make test` changes nothing, and what was tested is what users get."""
    names = {pin.partition("==")[0] for pin in pins("user.lock")}
    assert {"pyspark", "pyiceberg", "psycopg", "duckdb"} <= names
    versions = {name: {pin.split()[0] for pin in pins(name)} for name in ("user.lock", "dev.lock")}
    assert versions["user.lock"] <= versions["dev.lock"]


def test_a_user_gets_no_tools_of_developers() -> None:
    """Linters, type checkers and test servers are no part of a user's set-up."""
    names = {pin.partition("==")[0] for pin in pins("user.lock")}
    assert names & {"mypy", "ruff", "pytest", "hypothesis", "moto", "boto3", "import-linter"} == set()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_has_no_address(lock: Path) -> None:
    """Versions and digests hold with any mirror; the script that `make check` uses says so too."""
    assert subprocess.run([ROOT / "scripts/no-addresses", lock], check=False).returncode == 0
    assert "--hash=sha256:" in lock.read_text(encoding="utf-8")
