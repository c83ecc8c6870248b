"""One recorded file, and the rule for a file whose name or content is known already. Pure.

The identity of a file is its source, its business range (or its name, if it has none) and the SHA-256 of its content.
The same content for another range is another file, marked as a twin. A name that comes with other content for the same
time is never taken silently: it replaces the earlier file where the source says ``correction``, and is rejected
otherwise. A name that comes for another time is another file: producers use the same names in every directory.

Content from which rows were erased is never recorded again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from errata.canonical import digest_of
from errata.model.recording.business_range import BusinessRange


class FileStatus(StrEnum):
    """What a recorded file counts as."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


FILE_MOVES: Mapping[FileStatus, frozenset[FileStatus]] = {
    FileStatus.ACCEPTED: frozenset({FileStatus.SUPERSEDED, FileStatus.EXPIRED}),
    FileStatus.REJECTED: frozenset({FileStatus.EXPIRED}),
    FileStatus.SUPERSEDED: frozenset({FileStatus.EXPIRED}),
    FileStatus.EXPIRED: frozenset(),
}
_KEPT = (FileStatus.ACCEPTED, FileStatus.SUPERSEDED)
ERASURE = "erasure"
"""Beginning of the reason why a file was redacted or removed for erased subjects."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a look at a whole file found."""

    source: str
    name: str  # the last part of its path
    path: str  # where it was found
    bytes: int
    sha256: str
    produced_at: str  # when it was last modified there
    rows: int = 0  # bad ones included
    bad_rows: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    range: BusinessRange | None = None
    flaw: str | None = None  # why it cannot be read; None if it can

    @property
    def fingerprint(self) -> str:
        """Digest of its columns, in order."""
        return digest_of(list(self.columns.items()))

    @property
    def identity(self) -> str:
        """Digest of source, range or name, and content."""
        about = [self.range.start, self.range.end] if self.range else [self.name]
        return digest_of([self.source, *about, self.sha256])


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file as the ledger has it; places are relative to the location of recordings."""

    file_id: str
    source: str
    format: str
    name: str
    path: str
    bytes: int
    sha256: str
    identity: str
    rows: int
    bad_rows: int
    range: BusinessRange | None
    columns: Mapping[str, str]
    fingerprint: str
    produced_at: str
    seen_at: str
    attempt: int
    manifest_id: str | None
    first_run: str | None
    status: FileStatus
    why: str
    twin: str | None
    supersedes: str | None
    keep_until: str
    place: str
    content: str  # what runs read: the file itself, or its rows as Parquet
    content_bytes: int
    content_sha256: str
    expired_at: str | None = None

    @property
    def is_erased(self) -> bool:
        """Whether rows of it were erased, so that its content must not come back."""
        return self.why.startswith(ERASURE) and self.status in (FileStatus.SUPERSEDED, FileStatus.EXPIRED)


@dataclass(frozen=True, slots=True)
class Intake:
    """What becomes of a file: recorded under an id, or known already."""

    file_id: str
    status: FileStatus
    attempt: int = 1
    why: str = ""
    twin: str | None = None
    supersedes: str | None = None
    known: bool = False  # it is on record under this id, and nothing is added
    note: str = ""  # for the person who imports it


@dataclass(frozen=True, slots=True)
class Redacted:
    """What a recorded file is without the rows of erased subjects."""

    rows: int = 0  # that stay
    erased: int = 0  # rows of the subjects
    bad: int = 0  # lines that are no rows: nobody can tell whom they are about
    bytes: int = 0
    sha256: str = ""
    flaw: str | None = None  # why it cannot be read at all


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Where a file was stored, and what runs read of it; places are relative to the location of recordings."""

    place: str
    content: str
    bytes: int
    sha256: str


def decide_intake(seen: Inspection, known: Sequence[RecordedFile], duplicates: str) -> Intake:
    """What becomes of a file, given every file of its source on record.

    The same delivery (path, time and content) is the same file, so that an import can be repeated.
    """
    same = [one for one in known if one.identity == seen.identity]
    if erased := next((one for one in known if one.sha256 == seen.sha256 and one.is_erased), None):
        said = "this content was taken out of the recordings for erased subjects; it is not stored again"
        return Intake(erased.file_id, erased.status, erased.attempt, erased.why, known=True, note=said)
    again = [one for one in same if (one.path, one.produced_at) == (seen.path, seen.produced_at)]
    if kept := next((one for one in again if one.status in _KEPT), None):
        return Intake(kept.file_id, kept.status, kept.attempt, kept.why, known=True, note="already on record")
    intake = _decide_new(seen, known, same, duplicates)
    before = next((one for one in again if (one.status, one.why) == (intake.status, intake.why)), None)
    if intake.status is FileStatus.REJECTED and before is not None:
        return Intake(before.file_id, before.status, before.attempt, before.why, known=True, note="already on record")
    return intake


def _decide_new(
    seen: Inspection, known: Sequence[RecordedFile], same: Sequence[RecordedFile], duplicates: str
) -> Intake:
    attempt = max((one.attempt for one in same), default=0) + 1
    file_id = digest_of([seen.identity, attempt])[:32]
    if seen.flaw is not None:
        return Intake(file_id, FileStatus.REJECTED, attempt, seen.flaw)
    held = next((one for one in same if one.status is FileStatus.ACCEPTED), None)
    if held is not None:
        return _decide_duplicate(file_id, attempt, held, duplicates)
    replaced = [one for one in known if one.status is FileStatus.ACCEPTED and _is_replaced(one, seen)]
    if replaced and (duplicates != "correction" or len(replaced) > 1):
        named = ", ".join(one.file_id[:12] for one in replaced)
        why = f"{seen.name} is on record with other content ({named}); expected another name, or duplicates: correction"
        if duplicates == "correction":
            why = f"{seen.name} is about the time of several files on record ({named}); a correction replaces one"
        return Intake(file_id, FileStatus.REJECTED, attempt, why)
    twin = next((one.file_id for one in known if one.sha256 == seen.sha256 and one.identity != seen.identity), None)
    supersedes = replaced[0].file_id if replaced else None
    return Intake(file_id, FileStatus.ACCEPTED, attempt, twin=twin, supersedes=supersedes)


def _is_replaced(one: RecordedFile, seen: Inspection) -> bool:
    """Whether a file on record has the name of this one, other content, and may be about the same time."""
    if one.name != seen.name or one.sha256 == seen.sha256:
        return False
    return one.range is None or seen.range is None or one.range.overlaps(seen.range)


def _decide_duplicate(file_id: str, attempt: int, held: RecordedFile, duplicates: str) -> Intake:
    if duplicates == "ignored":
        said = f"the same content as {held.name} ({held.file_id[:12]}), ignored"
        return Intake(held.file_id, held.status, held.attempt, known=True, note=said)
    if duplicates == "rejected":
        why = f"the same content as {held.name} ({held.file_id[:12]})"
        return Intake(file_id, FileStatus.REJECTED, attempt, why)
    return Intake(file_id, FileStatus.ACCEPTED, attempt, supersedes=held.file_id)


def list_counted(files: Sequence[RecordedFile]) -> tuple[RecordedFile, ...]:
    """The files that are an input: accepted ones, and those that only retention has removed.

    What was removed still counts, so that an old partition does not look as if its input had changed.
    """
    held = [one for one in files if one.status is FileStatus.ACCEPTED]
    known, replaced = {one.identity for one in held}, {one.supersedes for one in files}
    removed = [
        one
        for one in files
        if one.status is FileStatus.EXPIRED
        and f"/{FileStatus.ACCEPTED.value}/" in one.place
        and one.identity not in known
        and one.file_id not in replaced
    ]
    return (*held, *removed)


def build_redacted(one: RecordedFile, found: Redacted, known: Sequence[RecordedFile]) -> tuple[Inspection, Intake]:
    """A file without the rows of erased subjects, which takes the place of the one that has them."""
    seen = Inspection(
        source=one.source, name=one.name, path=one.path, bytes=found.bytes, sha256=found.sha256,
        produced_at=one.produced_at, rows=found.rows, columns=one.columns, range=one.range,
    )  # fmt: skip
    attempt = max((other.attempt for other in known if other.identity == seen.identity), default=0) + 1
    why = f"{one.file_id[:12]} without rows of erased subjects"
    file_id = digest_of([seen.identity, attempt, one.file_id])[:32]
    return seen, Intake(file_id, FileStatus.ACCEPTED, attempt, why, supersedes=one.file_id)


def name_place(seen: Inspection, intake: Intake) -> str:
    """Where a file is kept, relative to the location of recordings."""
    return f"{seen.source}/{intake.status.value}/{intake.file_id}/{seen.name}"


def describe_superseded(by: str) -> str:
    """Why a file no longer counts."""
    return f"superseded by {by[:12]}"


def describe_redacted(by: str) -> str:
    """Why a file with rows of erased subjects no longer counts."""
    return f"{ERASURE}: redacted as {by[:12]}"
