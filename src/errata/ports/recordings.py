"""Port for files that are recorded: looked at where they were dropped, stored, and removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.recording.business_range import BusinessRange
    from errata.model.recording.declaration import Source
    from errata.model.recording.id_range import IdRange
    from errata.model.recording.recorded_file import Inspection, RecordedFile, Redacted, StoredContent
    from errata.model.recording.subject_names import SubjectNames


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was read of a source for a window: a file, and the point in time or position that it shows."""

    path: str
    mark: str
    notes: tuple[str, ...] = ()
    flaw: str | None = None  # why it cannot be accepted
    beside: str | None = None  # a file with everything that was received, to be kept beside it


class WindowReader(Protocol):
    """Reads a window of a source that others can change, so that it can be recorded."""

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """Write what the source has for the window to a file in the directory, as a whole or not at all.

        Safe to repeat after a crash. Raises ``EngineError`` if the source does not answer.
        """


class ScanReader(Protocol):
    """Reads a source that has no windows of time: by ranges of ids, or as a whole."""

    def scan(self, source: Source, ids: IdRange | None, directory: str) -> Fetched:
        """Write what the source has to a file in the directory; as :meth:`WindowReader.fetch`."""


class RecordingStore(Protocol):
    """Files under the location of recordings, and those that others dropped elsewhere."""

    def list_landing(self, path: str) -> tuple[str, ...]:
        """The file, or every file below the directory, in order; raises ``NotFound`` if there is none.

        Names that begin with a dot or an underscore are left out below a directory.
        """

    def inspect(self, path: str, source: Source, given: BusinessRange | None = None) -> Inspection:
        """Read a whole file and describe it; changes nothing, and needs little memory whatever is in the file.

        ``given`` is its business range, if a person gave one. A file that cannot be read is described with its flaw.
        """

    def store(self, seen: Inspection, source: Source, place: str, *, with_rows: bool) -> StoredContent:
        """Copy a file to its place, and with ``with_rows`` write what runs read of it; safe to repeat.

        A file that is not as it was seen raises ``SourceChanged``, and nothing is left at its place.
        """

    def write_reason(self, place: str, why: str) -> None:
        """Write why a file was rejected beside it; safe to repeat."""

    def keep_beside(self, path: str, place: str) -> str:
        """Copy a local file to the directory of a stored one; returns where it is. Safe to repeat."""

    def redact(
        self, one: RecordedFile, source: Source, names: SubjectNames, is_erased: Callable[[str], bool]
    ) -> Redacted:
        """Describe a stored file without the rows that name an erased subject, and without bad lines and messages.

        Changes nothing. The same file and the same subjects give the same bytes. A file that is gone has no rows.
        """

    def store_redacted(
        self, one: RecordedFile, source: Source, names: SubjectNames, is_erased: Callable[[str], bool], place: str
    ) -> StoredContent:
        """Write what :meth:`redact` describes to a place, with what runs read of it; safe to repeat."""

    def remove(self, places: tuple[str, ...]) -> None:
        """Remove stored files; those that are gone already are no error."""
