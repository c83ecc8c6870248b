"""What the demo needs: a project directory with a git history, and a tampered ledger."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MARKER = ".finsight-demo"
IGNORED = (MARKER, "/.errata/", "/lake/", "/logs/", "/tampered/", "__pycache__/", "/*.pem")


class DemoError(Exception):
    """Something that the demo relies on did not happen."""


def run_demo(replay: Callable[[], bool]) -> int:
    """Replay a demo and say how it ended; returns the exit code."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        return 0 if replay() else 1
    except DemoError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. No process is left running.", file=sys.stderr)
        return 130


class Declaring(Protocol):
    """A warehouse that knows how the project files declare it."""

    def declare(self, project: Path) -> tuple[str, str]:
        """The warehouse as errata.yaml declares it, and its copy as the product file does."""


def make_room(project: Path, marker: str) -> None:
    """An empty directory for a demo; an earlier demo in it is deleted, anything else is left alone."""
    if project.exists() and any(project.iterdir()):
        if not (project / marker).exists():
            raise DemoError(f"{project} is not empty and not a demo; choose another --directory")
        shutil.rmtree(project)
    (project / "logs").mkdir(parents=True)
    (project / marker).touch()


def lay_out(project: Path, warehouse: Declaring | None = None) -> None:
    """A fresh project directory; an earlier demo in it is deleted, anything else is left alone."""
    make_room(project, MARKER)
    (project / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED), encoding="utf-8")
    shutil.copy(HERE / "errata.yaml", project)
    for folder in ("products", "transforms"):
        shutil.copytree(HERE / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    if warehouse is not None:
        _declare(project, warehouse)
    _commit_releases(project)


def _declare(project: Path, warehouse: Declaring) -> None:
    """Add the warehouse, whose address is another one in every demo, and the copy of the product in it."""
    account, copy = warehouse.declare(project)
    with (project / "errata.yaml").open("a", encoding="utf-8") as file:
        file.write(f"# The server that ran during the demo.\nwarehouses:\n  {account}\n")
    product = project / "products" / "daily_revenue.yaml"
    key = "  key: [business_date, account_id, currency]\n"
    product.write_text(product.read_text("utf-8").replace(key, f"{key}  copies:\n    - {copy}\n", 1), "utf-8")


def _commit_releases(project: Path) -> None:
    """Two commits, so that the plan can name the one it runs. A machine without git has a project without history."""
    if shutil.which("git") is None:
        return
    transform, product = project / "transforms" / "daily_revenue.py", project / "products" / "daily_revenue.yaml"
    right, current = transform.read_text(encoding="utf-8"), product.read_text(encoding="utf-8")
    _git(project, "init", "--quiet")
    shutil.copy(HERE / "releases" / "daily_revenue_2_3_9.py", transform)
    product.write_text(current.replace("version: 2.4.1", "version: 2.3.9"), encoding="utf-8")
    _commit(project, "Release 2.3.9", "2025-12-30T09:00:00Z")
    transform.write_text(right, encoding="utf-8")
    product.write_text(current, encoding="utf-8")
    _commit(project, "Release 2.4.1: apply FX rates the right way round (FIN-231)", "2026-02-14T16:00:00Z")


def _commit(project: Path, subject: str, at: str) -> None:
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "-m", subject, at=at)


def _git(project: Path, *arguments: str, at: str = "") -> None:
    person = {f"GIT_{role}_{field}": value for role in ("AUTHOR", "COMMITTER") for field, value in _FINSIGHT.items()}
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    # Ignore the user's own settings: signing, hooks, templates.
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", *arguments], cwd=project, check=True, env={**environment, **person, **dates, **quiet})


_FINSIGHT = {"NAME": "FinSight data team", "EMAIL": "data@finsight.example"}


def python(module: str, *arguments: str) -> list[str]:
    """The command line of one of this example's own programs."""
    return [sys.executable, "-m", f"examples.finsight.{module}", *arguments]


def environment() -> dict[str, str]:
    """The environment of a child: plain output, and Spark on the loopback interface."""
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONUNBUFFERED": "1"}


def tampered_copy(project: Path) -> tuple[Path, int]:
    """A copy of the project whose ledger claims that the requester approved, and the number of the edited entry."""
    copy = project / "tampered"
    (copy / ".errata").mkdir(parents=True)
    shutil.copy(project / "errata.yaml", copy)
    for folder in ("products", "transforms"):
        shutil.copytree(project / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (
        closing(sqlite3.connect(project / ".errata" / "ledger.db")) as source,
        closing(sqlite3.connect(copy / ".errata" / "ledger.db")) as target,
    ):
        source.backup(target)
        # The owner of the file can drop its triggers; that is why the entries are chained.
        for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            target.execute(f'DROP TRIGGER "{name}"')
        found = target.execute("SELECT seq, run_id FROM audit WHERE action = 'run.approved' ORDER BY seq").fetchone()
        if found is None:
            raise DemoError("the ledger has no audit entry of an approval")
        entry, run = found
        # people are pseudonyms in the log, so the forger takes the one that planned the run
        asked = target.execute("SELECT person FROM audit WHERE action = 'run.planned' AND run_id = ?", [run]).fetchone()
        target.execute("UPDATE audit SET person = ? WHERE seq = ?", [asked[0], entry])
        target.commit()
    return copy, entry
