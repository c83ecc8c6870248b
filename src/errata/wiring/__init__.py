"""Wiring: choose the adapter for every port. ``errata.open(project)`` returns a Client.

Nothing is started here: catalogs are opened when metadata is read, a JVM when a commit is made, Spark when rows are
computed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from errata import logs
from errata.client import Client
from errata.ledger import Ledger
from errata.model.product import Project
from errata.ports.hooks import ProgressListener
from errata.text.escape import escape_text
from errata.wiring.engines import ProjectEngines
from errata.workspace import Engines, Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.project import ProjectProblem
    from errata.views.checks import DoctorCheck

__all__ = ["build_client", "open_project", "open_workspace"]


def open_project(
    project: Path | str,
    *,
    spark: SparkSession | None = None,
    narrate: Callable[[str], None] | None = None,
    progress: Callable[[str, int, str], ProgressListener] | None = None,
) -> Client:
    """Open the project in this directory; ``spark`` is the caller's session, if Errata should use it."""
    return build_client(open_workspace(project, spark=spark, narrate=narrate, progress=progress))


def open_workspace(
    project: Path | str,
    *,
    spark: SparkSession | None = None,
    build_engines: Callable[[Project, Ledger], Engines] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = time.sleep,
    narrate: Callable[[str], None] | None = None,
    progress: Callable[[str, int, str], ProgressListener] | None = None,
) -> Workspace:
    """Open the project for commands, on Spark and Iceberg or on the engines of the caller."""
    from errata.project import load_project

    loaded = load_project(project)
    say = narrate or _print_line
    _start_log(loaded, say)
    ledger = Ledger.attach(loaded.ledger, redact=loaded.redact, wrapping=_build_key_loader(loaded))
    if loaded.lineage is not None:
        from errata.delivery.lineage.lineage_items import LineageRule

        ledger.follow(LineageRule().choose)
    return Workspace(
        loaded,
        ledger,
        build_engines(loaded, ledger) if build_engines else ProjectEngines(loaded, ledger, spark),
        now=now,
        narrate=lambda text: say(loaded.redact(text)),
        progress=progress or _NoProgress,
        sleep=sleep,
    )


def _start_log(project: Project, say: Callable[[str], None]) -> None:
    if project.logging is None:
        return
    if problem := logs.start(project.logging.file, project.logging.level, project.redact):
        say(f"WARNING: no log lines are written: {project.redact(problem)}")


def build_client(workspace: Workspace) -> Client:
    """The client of an open workspace."""

    def doctor(deep: bool) -> tuple[DoctorCheck, ...]:
        from errata.wiring.doctor import run_checks

        # the engines of tests also have what doctor looks at
        return run_checks(workspace, cast("ProjectEngines", workspace.engines), deep=deep)

    def check() -> tuple[ProjectProblem, ...]:
        from errata.wiring.check import check_workspace

        return check_workspace(workspace)

    return Client(workspace, doctor, check)


def _build_key_loader(project: Project) -> Callable[[], bytes] | None:
    """A loader for the key that wraps people's keys; it is read when first needed. None if none is configured."""
    setting = project.evidence.subject_key
    if setting is None:
        return None

    @cache
    def key() -> bytes:
        from errata.evidence.keys import derive_wrapping_key, load_signing_key

        return derive_wrapping_key(load_signing_key(setting, Path(project.root), "evidence.subject_key"))

    return key


def _print_line(text: str) -> None:
    sys.stderr.write(f"{escape_text(text)}\n")


class _NoProgress:
    """A progress listener that shows nothing."""

    def __init__(self, run_id: str, partitions: int, unit: str) -> None:
        pass

    def prepare(self, text: str | None) -> None:
        """Something is done before the first chunk."""

    def advance(self, partitions: Collection[str], rows: int) -> None:
        """A chunk was adopted."""

    def show(self, chunk_id: str, text: str | None) -> None:
        """A chunk's status changed."""

    def close(self) -> None:
        """The worker stopped."""
