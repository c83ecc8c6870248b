"""Keep the diff of a candidate, so that a second look at it needs neither Spark nor the tables.

A diff shows rows, and the ledger never forgets, so the diff is kept in a file of the project that only its owner can
read. The ledger keeps the SHA-256 of the file as an audited run note: a file with any other content is not used, and
evidence may rely on what it says. Nothing is kept for tables whose products name data subjects, because an erased
subject would stay in the file. ``errata cleanup`` removes the files of a run with its other leftovers.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from errata.canonical import digest_of, from_plain, sha256, to_plain
from errata.errors import ErrataError
from errata.ledger import CandidateRecord
from errata.model.diff import Diff, OutsideScope
from errata.workspace import RunContext, Workspace

KEPT_ROWS = 20
"""Sample rows in a kept diff: as many as a report shows."""
_FORMAT = 1
_FACT = "kept-diff."


@dataclass(frozen=True, slots=True)
class KeptDiff:
    """What is kept of a comparison: everything that had to be read from the tables."""

    diff: Diff
    outside: OutsideScope | None

    def has_rows(self, sample: int) -> bool:
        """Whether it has this many sample rows, or all that differ."""
        return sample <= KEPT_ROWS or len(self.diff.sample) < KEPT_ROWS


@dataclass(frozen=True, slots=True)
class DiffKeeper:
    """The place of one kept diff: a candidate, its base, the masked columns and the partitions."""

    context: RunContext
    candidate: CandidateRecord
    masked: Sequence[str]
    partitions: Sequence[str]

    @property
    def is_allowed(self) -> bool:
        """Whether rows of this table may be kept: some product writes it, and none of them names data subjects."""
        products = self.context.workspace.project.products.values()
        found = [one.target.subjects for one in products if one.target.table == self.context.run.table]
        return bool(found) and not any(found)

    def load(self) -> KeptDiff | None:
        """The kept diff; None if there is none, or if its file is not as it was written."""
        self._discard_others()
        if not self.is_allowed:
            return None
        try:
            content = self._file.read_bytes()
        except OSError:
            return None
        if self.context.ledger.facts.list(self.context.run_id).get(self._note(content)) != _describe(content):
            self.context.workspace.narrate("the kept diff is not as it was written; comparing again")
            return None
        return from_plain(KeptDiff, json.loads(content))

    def keep(self, found: KeptDiff) -> None:
        """Keep a diff; if that is not possible, the next look compares again."""
        if not self.is_allowed:
            return
        content = json.dumps(to_plain(found)).encode()
        # the file first: a note without a file is harmless, and a file without its note is not used
        with suppress(OSError, ErrataError):
            _write_private(self._file, content)
            self.context.ledger.facts.record(
                self.context.run_id, self._note(content), _describe(content), self.context.actor
            )

    @property
    def _file(self) -> Path:
        return self._folder / f"{digest_of(list(self.partitions))[:16]}.json"

    @property
    def _folder(self) -> Path:
        """One folder per state: a new candidate, or a column masked since, makes all that was kept before useless."""
        one = self.candidate
        state = digest_of([_FORMAT, one.n, one.digest, one.snapshot_id, one.base_snapshot_id, sorted(self.masked)])
        return _run_folder(self.context.workspace, self.context.run_id) / state[:16]

    def _note(self, content: bytes) -> str:
        return f"{_FACT}{self._folder.name}.{self._file.stem}.{sha256(content)[:16]}"

    def _discard_others(self) -> None:
        kept = self._folder if self.is_allowed else None
        for folder in _list_folders(self._folder.parent):
            if folder != kept:
                shutil.rmtree(folder, ignore_errors=True)


def has_kept_diffs(workspace: Workspace, run_id: str) -> bool:
    """Whether this project directory holds a diff of the run."""
    return bool(_list_folders(_run_folder(workspace, run_id)))


def discard_kept_diffs(workspace: Workspace, run_id: str) -> None:
    """Remove the kept diffs of a run from this project directory."""
    shutil.rmtree(_run_folder(workspace, run_id), ignore_errors=True)


def _run_folder(workspace: Workspace, run_id: str) -> Path:
    return Path(workspace.project.root) / ".errata" / "diffs" / run_id


def _list_folders(place: Path) -> list[Path]:
    try:
        return [one for one in place.iterdir() if one.is_dir()]
    except OSError:
        return []


def _describe(content: bytes) -> dict[str, str]:
    return {"sha256": sha256(content)}


def _write_private(place: Path, content: bytes) -> None:
    """Write a file that only its owner can read; a reader sees all of it or nothing."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, draft = tempfile.mkstemp(dir=place.parent)  # mkstemp makes it private
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(draft).replace(place)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
