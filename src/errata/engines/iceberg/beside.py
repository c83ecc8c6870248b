"""Tables beside a target: rows wait on a branch of their own, and one append with the publication's tag shows them.

The tag makes it once: a second append, by a repetition or by a process that was believed dead, finds the tag taken.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from errata.engines.iceberg.java import JavaIceberg, java_paths, rows_of
from errata.engines.iceberg.refs import DAY_MS, GUARD, ensure_branch, ensure_guard, main_head, ref_of, retrying
from errata.errors import EngineError
from errata.model.refs import pub_tag, rows_branch
from errata.publisher.ports import BesideTable, StagedRows

__all__ = ["IcebergBeside"]

_DAYS = 7


class IcebergBeside:
    """Appends to tables beside a target."""

    def __init__(self, java: JavaIceberg) -> None:
        self._java = java

    def open_branch(self, table: str, publication_id: str) -> str:
        """See the port; the branch is rooted on the table's guard, so it holds only what is written to it."""
        guard, _ = ensure_guard(self._java, table)
        branch = f"{rows_branch(publication_id, 1)}_{uuid.uuid4().hex[:8]}"
        ensure_branch(self._java, table, branch, guard, _DAYS)
        return branch

    def staged(self, table: str, branch: str) -> StagedRows:
        """See the port."""
        handle = self._java.load(table)
        files = self._files(handle, self._head_of(handle, table, branch))[1]
        return StagedRows(sum(int(row[1]) for row in files), len(files))

    def landed(self, table: str, publication_id: str) -> str | None:
        """See the port: by the tag, then by what the table remembers."""
        return self._landed(self._java.load(table), publication_id)

    def land(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        """See the port."""
        return retrying(lambda: self._try(table, publication_id, branch, properties))

    def head(self, table: str) -> str:
        """See the port."""
        return main_head(self._java.load(table)) or ""

    def _try(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        handle, transaction = self._java.begin(table)
        if found := self._landed(handle, publication_id):
            return found
        tag = pub_tag(publication_id)
        if ref_of(handle, tag) is not None:
            raise EngineError(f"{publication_id} was closed behind a fence; its rows are not shown in {table}")
        tasks, files = self._files(handle, self._head_of(handle, table, branch))
        append = transaction.newFastAppend()
        if files:
            self._java.bulk.append(append, tasks, java_paths(row[0] for row in files))
        for key, value in properties.items():
            append = append.set(key, value)
        append.commit()
        made = str(transaction.table().currentSnapshot().snapshotId())
        manage = transaction.manageSnapshots().createTag(tag, int(made)).setMaxRefAgeMs(tag, _DAYS * DAY_MS)
        manage.removeBranch(branch).commit()
        transaction.commitTransaction()
        return made

    def _landed(self, handle: Any, publication_id: str) -> str | None:
        tagged = ref_of(handle, pub_tag(publication_id))
        if tagged is not None:
            summary = handle.snapshot(int(tagged)).summary()
            return tagged if summary.get("errata.publication") == publication_id else None
        rows = rows_of(self._java.bulk.snapshots(handle))
        return next((row[0] for row in rows if f"errata.publication={publication_id}" in row[4:]), None)

    def _head_of(self, handle: Any, table: str, branch: str) -> str:
        """The rows that wait on the branch, and nothing else."""
        head, guard = ref_of(handle, branch), ref_of(handle, GUARD)
        # dropped meanwhile, an append brings a branch back from main: everything there would be shown twice
        if head is None or (head != guard and str(handle.snapshot(int(head)).parentId()) != guard):
            raise EngineError(f"branch {branch} of {table} was dropped while it was written")
        return head

    def _files(self, handle: Any, snapshot_id: str) -> tuple[Any, list[list[str]]]:
        tasks = self._java.bulk.scan(handle, int(snapshot_id), self._java.everything)
        # no partition is asked for, so any field will do
        return tasks, list(rows_of(self._java.bulk.describe(handle, tasks, 1, "identity")))


_conforms: type[BesideTable] = IcebergBeside
