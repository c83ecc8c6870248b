"""Run dbt in an environment of its own: seal a model by digests, and build it for an interval. Starts processes.

Every call writes its artifacts into a directory of its own, so that the project's files stay as they are. What dbt
reads is sealed by four digests: the project's files, installed packages, the manifest of a fresh compilation without
times and paths, and the compiled SQL, in which variables of the environment show.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from errata.canonical import digest_of
from errata.errors import EngineError
from errata.ports.hooks import DbtBuild, DbtRunner

_FILES = frozenset({".sql", ".yml", ".yaml", ".csv", ".py", ".md"})
"""What dbt reads of a project; a database file beside it changes all the time."""
_WRITTEN = frozenset({"target", "logs", "dbt_packages", ".git"})
_PACKAGES = ("dbt_packages", "package-lock.yml", "packages.yml")
_VOLATILE = frozenset({"created_at", "compiled_path", "build_path", "metadata", "root_path"})
_COMPILE_SECONDS = 600
_LAST_LINES = 12


@dataclass(frozen=True, slots=True)
class DbtProcess:
    """dbt as the project starts it."""

    project: Path

    def seal(self, command: Sequence[str], select: str) -> dict[str, str]:
        """See the port."""
        with TemporaryDirectory(prefix="errata-dbt-") as place:
            done = self._run(command, ["compile", "--select", select], Path(place), _COMPILE_SECONDS)
            if done.returncode:
                raise EngineError(
                    f"dbt could not compile {select}: {_read_last_lines(done)}", state="nothing was changed"
                )
            manifest = json.loads((Path(place) / "manifest.json").read_bytes())
            return {
                "project": _digest_files(self.project, self._iterate_project()),
                "packages": _digest_files(self.project, self._iterate_packages()),
                "manifest": digest_of(_strip(manifest)),
                "compiled": _digest_files(Path(place), sorted((Path(place) / "compiled").rglob("*.sql"))),
            }

    def build(self, command: Sequence[str], select: str, start: str, end: str) -> DbtBuild:
        """See the port."""
        with TemporaryDirectory(prefix="errata-dbt-") as place:
            arguments = ["build", "--select", select, "--event-time-start", start, "--event-time-end", end]
            done = self._run(command, arguments, Path(place), None)
            results = Path(place) / "run_results.json"
            content = results.read_bytes() if results.exists() else b""
            return DbtBuild(not done.returncode and bool(content), content, _read_last_lines(done))

    def _run(
        self, command: Sequence[str], arguments: Sequence[str], place: Path, seconds: float | None
    ) -> subprocess.CompletedProcess[str]:
        written = ["--target-path", str(place), "--log-path", str(place / "logs"), "--no-use-colors"]
        try:
            return subprocess.run(
                [*command, *arguments, *written],
                cwd=self.project,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(
                f"dbt could not be started as {command[0]}: {type(error).__name__}",
                state="nothing was changed",
                hint="install dbt in an environment of its own, and name it as dbt.command in errata.yaml",
            ) from error

    def _iterate_project(self) -> Iterator[Path]:
        for path in sorted(self.project.rglob("*")):
            inside = path.relative_to(self.project).parts
            if path.is_file() and path.suffix in _FILES and inside[0] not in (*_WRITTEN, *_PACKAGES):
                yield path

    def _iterate_packages(self) -> Iterator[Path]:
        for name in _PACKAGES:
            place = self.project / name
            yield from [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())


_conforms: type[DbtRunner] = DbtProcess


def _digest_files(root: Path, files: Iterable[Path]) -> str:
    """Digest of names and contents."""
    return digest_of(
        [[path.relative_to(root).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()] for path in files]
    )


def _strip(value: Any) -> Any:
    """A manifest without what differs between two compilations of the same project; numbers become text."""
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [_strip(item) for item in value]
    return str(value) if isinstance(value, float) else value


def _read_last_lines(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return " | ".join(lines[-_LAST_LINES:])
