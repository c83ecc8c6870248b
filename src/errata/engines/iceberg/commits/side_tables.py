"""Side tables of a target: rows are staged on a branch, and one append to main, with the publication's tag, shows them.

The tag makes the append happen once: a second one, by a retry or by a process believed dead, finds the tag taken.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from errata.engines.iceberg.commits.java import ALL_ROWS, JavaIceberg, join_paths, parse_rows
from errata.engines.iceberg.commits.refs import (
    find_publication,
    find_ref,
    main_head,
    open_branch,
    retry_commit,
)
from errata.errors import EngineError
from errata.model.refs import DAY_MS, STEP_DAYS, pub_tag, rows_branch
from errata.ports.publish import SideTable, StagedRows

ROWS_PROPERTY = "errata.rows"
"""Snapshot property of an append to a staging branch; its value is the branch name."""


class IcebergSideTables:
    """Appends to side tables."""

    def __init__(self, java: JavaIceberg) -> None:
        self._java = java

    def open_branch(self, table: str, publication_id: str) -> str:
        """See the port. The branch is rooted on the table's guard, so it holds only what is written to it."""
        branch = f"{rows_branch(publication_id, 1)}_{uuid.uuid4().hex[:8]}"
        open_branch(self._java, table, branch, STEP_DAYS)
        return branch

    def staged(self, table: str, branch: str) -> StagedRows:
        """See the port."""
        handle = self._java.load(table)
        files = self._files(handle, self._require_head(handle, table, branch))
        return StagedRows(sum(int(row[1]) for row in files), len(files))

    def list_run_commits(self, table: str, run_id: str) -> tuple[Mapping[str, str], ...]:
        """See the port."""
        rows = parse_rows(self._java.bulk.snapshots(self._java.load(table)))
        found = [{"snapshot_id": row[0], **dict(pair.split("=", 1) for pair in row[4:])} for row in rows]
        return tuple(one for one in found if one.get("errata.run") == run_id)

    def landed(self, table: str, publication_id: str) -> str | None:
        """See the port."""
        return find_publication(self._java, self._java.load(table), publication_id)[0]

    def land(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        """See the port."""
        return retry_commit(lambda: self._try_append(table, publication_id, branch, properties))

    def head(self, table: str) -> str:
        """See the port."""
        return main_head(self._java.load(table)) or ""

    def _try_append(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        tag = pub_tag(publication_id)
        with self._java.commit(table) as commit:
            handle = commit.table()
            # an earlier try may have landed although its answer was lost
            landed, is_fenced = find_publication(self._java, handle, publication_id)
            if landed is not None:
                return landed
            if is_fenced:
                raise EngineError(f"{publication_id} was closed behind a fence; its rows are not shown in {table}")
            head = self._require_head(handle, table, branch)
            files = self._files(handle, head)
            commit.startAppend(None)
            if files:
                commit.add(handle, int(head), ALL_ROWS, join_paths(row[0] for row in files))
            for key, value in properties.items():
                commit.set(key, value)
            made = str(commit.finish())
            commit.createTag(tag, int(made))
            commit.setAge(tag, STEP_DAYS * DAY_MS)
            commit.removeRef(branch)
            commit.swap()
            return made

    def _require_head(self, handle: Any, table: str, branch: str) -> str:
        """The branch's head; raises unless it holds the staged rows and nothing else."""
        head = find_ref(handle, branch)
        # a branch that was dropped and recreated from main would hold rows that are already visible
        summary = handle.snapshot(int(head)).summary() if head is not None else {}
        if head is None or branch not in (summary.get("errata.branch"), summary.get(ROWS_PROPERTY)):
            raise EngineError(f"branch {branch} of {table} was dropped while it was written")
        return head

    def _files(self, handle: Any, snapshot_id: str) -> list[list[str]]:
        # no partition is requested, so any field will do
        java = self._java
        return list(parse_rows(java.bulk.live(handle, int(snapshot_id), ALL_ROWS, 1, "identity", "")))


_conforms: type[SideTable] = IcebergSideTables
