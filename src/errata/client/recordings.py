"""Methods of the Client about recordings: files that are recorded before a run reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.client.open_project import OpenProject
from errata.commands import sources

if TYPE_CHECKING:
    from errata.views.recordings import DatasetView, ImportView, RecordingsView


class Recordings(OpenProject):
    """Record files, and list them."""

    def import_files(
        self,
        paths: str | Sequence[str],
        source: str,
        *,
        start: str | None = None,
        end: str | None = None,
        manifest: str | None = None,
        as_: str | None = None,
    ) -> ImportView:
        """Copy files, or all files below directories, to the recordings of a source.

        ``start`` and ``end`` are the time that they are about, the end excluded; ``manifest`` is the producer's own id
        of the delivery. Repeating it changes nothing.

        Example: client.import_files("landing/orders", "orders", as_="ana").rejected
        """
        given = [paths] if isinstance(paths, str) else list(paths)
        return sources.import_.import_files(
            self._workspace, self._actor(as_), given, source, start, end, manifest_id=manifest
        )

    def adopt_parquet(self, table: str, path: str, *, as_: str | None = None) -> DatasetView:
        """Make a table of plain Parquet files in folders such as ``day=2026-01-03``, where they are.

        No file is copied or changed. Repeating it changes nothing.

        Example: client.adopt_parquet("lake.raw.events", "s3://bucket/events", as_="ana").rows
        """
        from errata.project.adopt import refuse_names

        refuse_names(table)
        return sources.adopt.adopt_dataset(self._workspace, self._actor(as_), table, path)

    def record(
        self, source: str, start: str | None = None, end: str | None = None, *, as_: str | None = None
    ) -> ImportView:
        """Read a window of a source, the end excluded, and record it like a file.

        The ends are times, or ids if the source is read by ids; a source without windows needs none.

        Example: client.record("orders_db", "2026-01-03", "2026-01-04", as_="ana").files[0].rows
        """
        return sources.record.record_window(self._workspace, self._actor(as_), source, start, end)

    def recordings(self, source: str | None = None, *, every: bool = False) -> RecordingsView:
        """Accepted files of a source or of all; with ``every`` also those that were rejected, superseded or removed.

        Example: [one.sha256 for one in client.recordings("orders").files]
        """
        return sources.recordings.list_recordings(self._workspace, source, every=every)
