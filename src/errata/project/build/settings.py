"""Make locations absolute and build the evidence settings; locations with another scheme are left alone. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from errata.model.product.project import DbtSettings, EvidenceSettings, LogSettings
from errata.project.problems import ProblemReport

_SQLITE = re.compile(r"(sqlite(?:\+[a-z0-9_]+)?:///|jdbc:sqlite:)([^?]*)(.*)", re.DOTALL)


def has_scheme(place: str) -> bool:
    """Whether a location names its file system, as ``s3://bucket`` and ``file:/tmp`` do."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", place) is not None


def to_absolute(root: Path, place: str) -> str:
    """Make a path relative to the project absolute.

    >>> to_absolute(Path("/p"), ".errata/warehouse"), to_absolute(Path("/p"), "s3://lake/wh")
    ('/p/.errata/warehouse', 's3://lake/wh')
    """
    if has_scheme(place) or place.startswith("/"):
        return place
    return str(root / place.removeprefix("./"))


def to_absolute_url(root: Path, url: str) -> str:
    """Make the SQLite file of a database URL absolute; other databases are left alone.

    >>> to_absolute_url(Path("/p"), "sqlite:///.errata/ledger.db")
    'sqlite:////p/.errata/ledger.db'
    """
    found = _SQLITE.fullmatch(url)
    if not found or found[2] in ("", ":memory:") or found[2].startswith(("/", "file:")):
        return url
    return found[1] + to_absolute(root, found[2]) + found[3]


def build_evidence(file: EvidenceSettings, root: Path, report: ProblemReport) -> EvidenceSettings:
    """Where evidence is stored, and the keys that sign it."""
    if file.heads is not None and file.key is None:
        report.at_key(("evidence", "heads"), 'missing key "key" in evidence, which signs the heads')
    if file.heads is not None and has_scheme(file.heads):
        report.at(("evidence", "heads"), "expected a directory, such as one of a mounted write-once store")
    return replace(file, heads=None if file.heads is None else to_absolute(root, file.heads))


def build_logging(file: LogSettings, root: Path, report: ProblemReport) -> LogSettings:
    """Where log lines go."""
    if file.file is not None and has_scheme(file.file):
        report.at(("logging", "file"), "expected a file of this machine")
    return replace(file, file=None if file.file is None else to_absolute(root, file.file))


def build_dbt(file: DbtSettings, root: Path, report: ProblemReport) -> DbtSettings:
    """Where dbt's project is and how dbt is started; a bare command is looked up in PATH."""
    if file.build and file.project is None:
        report.at_key(("dbt", "build"), 'missing key "project" in dbt, in which the models are built')
    program, *arguments = file.command
    return replace(
        file,
        manifest=to_absolute(root, file.manifest),
        project=None if file.project is None else to_absolute(root, file.project),
        command=(to_absolute(root, program) if "/" in program else program, *arguments),
    )
