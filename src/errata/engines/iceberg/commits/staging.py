"""Stage a run on Iceberg: the run branch, the files that attempts appended, and the candidate.

All of it is on the table named by ``TargetPin.staging``: the target, or its shadow if the target cannot hold the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from errata.engines.iceberg.commits.java import JavaIceberg, join_paths, parse_partition, parse_rows
from errata.engines.iceberg.commits.refs import (
    drop_refs,
    ensure_guard,
    find_marked_snapshots,
    find_ref,
    main_head,
    open_branch,
    retry_commit,
)
from errata.engines.iceberg.commits.shadow import drop_shadow, ensure_shadow
from errata.errors import EngineError, NotFound, RunExpired
from errata.failpoints import failpoint
from errata.model.manifest import TargetPin
from errata.model.refs import DAY_MS, run_branch
from errata.model.table import DataFile, choose_attempt_snapshot
from errata.ports.compute import Candidate, StagedOutput, StagingTable


class IcebergStaging:
    """Staging operations for workers and for building candidates."""

    def __init__(self, java: JavaIceberg) -> None:
        self._java = java

    def prepare(self, target: TargetPin, run_id: str, keep_days: int) -> str:
        """Create the guard and the run branch, which is rooted on the guard and so holds only what attempts append."""
        # the shadow first: if there is one, the run branch is opened on it
        ensure_shadow(self._java, target, run_id)
        guard, _ = ensure_guard(self._java, target.table)
        failpoint("run.after_guard")
        open_branch(self._java, target.staging.table, run_branch(run_id), keep_days)
        return guard

    def find_attempt(self, target: TargetPin, attempt: str) -> StagedOutput | None:
        """The output of the snapshot that carries this attempt's property; None if the attempt committed nothing."""
        table = self._load(target)
        found = {
            each: self._read_added_files(table, target, each)
            for each in find_marked_snapshots(self._java, table, "errata.attempt", attempt)
        }
        chosen = choose_attempt_snapshot(attempt, {each: output.files for each, output in found.items()})
        return None if chosen is None else found[chosen]

    def staged(self, target: TargetPin, snapshot_id: str) -> StagedOutput:
        """The files that one adopted snapshot added."""
        table = self._load(target)
        if table.snapshot(int(snapshot_id)) is None:
            raise RunExpired(
                f"staged snapshot {snapshot_id} of {target.staging.table} is gone: expired, or its branch was dropped",
                state="main is unchanged",
                hint="plan the request again with --supersede",
            )
        return self._read_added_files(table, target, snapshot_id)

    def _load(self, target: TargetPin) -> Any:
        try:
            return self._java.load(target.staging.table)
        except NotFound as gone:
            raise RunExpired(
                f"{target.staging.table}, which held the staged output, is gone",
                state="main is unchanged",
                hint="plan the request again with --supersede",
            ) from gone

    def _read_added_files(self, table: Any, target: TargetPin, snapshot_id: str) -> StagedOutput:
        source, transform = self._java.field(table, target)
        rows = parse_rows(self._java.bulk.changes(table, int(snapshot_id), source, transform))
        files = tuple(
            DataFile(path, int(count), int(size), parse_partition(target, raw))
            for sign, path, count, size, raw, content in rows
            if sign == "+" and content == "DATA"
        )
        return StagedOutput(snapshot_id, files)

    def find_candidate(self, target: TargetPin, branch: str) -> Candidate | None:
        """The candidate at the branch's head; None unless that snapshot was made for this branch."""
        table = self._load(target)
        head = find_ref(table, branch)
        if head is None:
            return None
        snapshot = table.snapshot(int(head))
        summary = snapshot.summary()
        if summary.get("errata.candidate") != branch:
            return None
        return Candidate(branch, str(summary.get("errata.base") or snapshot.parentId()), head)

    def make_candidate(
        self,
        target: TargetPin,
        run_id: str,
        branch: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        keep_days: int,
    ) -> Candidate:
        """Create a branch at main's head with one overwrite on it, in one transaction on one metadata version.

        On a shadow, whose main is empty, the result is exactly the adopted files; they are still compared with the
        target's head as the base.
        """

        def act() -> Candidate:
            # an earlier try may have landed although its answer was lost
            if found := self.find_candidate(target, branch):
                return found
            with self._java.commit(target.staging.table) as commit:
                self._assemble(commit, target, run_id, branch, partitions, paths)
                commit.setAge(branch, keep_days * DAY_MS)
                commit.swap()
            made = self.find_candidate(target, branch)
            if made is None:
                raise EngineError(f"the candidate branch {branch} did not appear on {target.staging.table}")
            return made

        return retry_commit(act)

    def _assemble(
        self, commit: Any, target: TargetPin, run_id: str, branch: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> None:
        java, table = self._java, commit.table()
        head, run_head = main_head(table), find_ref(table, run_branch(run_id))
        if head is None or run_head is None:
            raise RunExpired(
                f"the run branch {run_branch(run_id)} of {target.staging.table} is gone", state="main is unchanged"
            )
        base = main_head(java.load(target.table)) if target.shadow else head
        scope = java.scope(table, target, partitions)
        removing = [f.path for f in java.live(table, head, target, partitions) if f.partition is not None]
        commit.createBranch(branch, int(head))
        commit.startOverwrite(branch)
        removed = commit.remove(int(head), scope, join_paths(removing)) if removing else 0
        added = commit.add(table, int(run_head), scope, join_paths(paths)) if paths else 0
        if removed != len(removing) or added != len(set(paths)):
            raise EngineError(
                f"the candidate of {target.table} could not be assembled: {added} of {len(paths)} staged files found",
                state="main is unchanged",
            )
        commit.set("errata.candidate", branch)
        commit.set("errata.run", run_id)
        commit.set("errata.base", base or "")
        commit.finish()

    def drop_refs(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags in one commit."""
        return drop_refs(self._java, table, refs)

    def drop_shadow(self, target: TargetPin) -> bool:
        """Drop the shadow and the staged files that the target does not read; False if there is none."""
        return drop_shadow(self._java, target)


_conforms: type[StagingTable] = IcebergStaging
