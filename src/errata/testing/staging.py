"""Staging on tables in memory: run branches, attempts, candidates, and shadows of targets."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from errata.errors import EngineError, NotFound, RunExpired
from errata.failpoints import failpoint
from errata.model.manifest import TargetPin
from errata.model.refs import run_branch
from errata.model.table import DataFile, choose_attempt_snapshot, describe_planned_schema, find_columns_to_add
from errata.ports.compute import Candidate, StagedOutput, StagingTable
from errata.testing.lake import Lake
from errata.testing.metadata import Field, Metadata, Schema, Spec, Stored
from errata.testing.publishing import describe_schema
from errata.testing.refs import DAY_MS, drop_refs, ensure_guard, find_marked, open_branch
from errata.testing.scope import Scope
from errata.testing.table import Draft, MemoryTable

ATTEMPT = "errata.attempt"


@dataclass(frozen=True, slots=True)
class MemoryStaging:
    """Staging operations for workers and for building candidates."""

    lake: Lake

    def prepare(self, target: TargetPin, run_id: str, keep_days: int) -> str:
        """See the port."""
        self._ensure_shadow(target, run_id)
        guard, _ = ensure_guard(self.lake.table(target.table))
        failpoint("run.after_guard")
        open_branch(self.lake.table(target.staging.table), run_branch(run_id), keep_days)
        return guard

    def _ensure_shadow(self, target: TargetPin, run_id: str) -> None:
        if target.shadow is None or target.shadow in self.lake.tables:
            return
        owner = self.lake.table(target.table)
        missing = find_columns_to_add(target, describe_schema(owner.metadata))
        if missing is None:
            raise RunExpired(
                f"{target.table} changed after planning: expected {describe_planned_schema(target)}, found "
                f"{describe_schema(owner.metadata)}",
                state="nothing was staged; main is unchanged",
                hint=f"plan again with --supersede {run_id}",
            )
        self.lake.tables[target.shadow] = _copy_empty(owner, target, missing)

    def find_attempt(self, target: TargetPin, attempt: str) -> StagedOutput | None:
        """See the port."""
        seen = self._load(target)
        found = {name: self._read_added(seen, target, name) for name in find_marked(seen, ATTEMPT, attempt)}
        chosen = choose_attempt_snapshot(attempt, {name: output.files for name, output in found.items()})
        return None if chosen is None else found[chosen]

    def staged(self, target: TargetPin, snapshot_id: str) -> StagedOutput:
        """See the port."""
        seen = self._load(target)
        if snapshot_id not in seen.snapshots:
            raise RunExpired(
                f"staged snapshot {snapshot_id} of {target.staging.table} is gone: expired, or its branch was dropped",
                state="main is unchanged",
                hint="plan the request again with --supersede",
            )
        return self._read_added(seen, target, snapshot_id)

    def _load(self, target: TargetPin) -> Metadata:
        try:
            return self.lake.table(target.staging.table).metadata
        except NotFound as gone:
            raise RunExpired(
                f"{target.staging.table}, which held the staged output, is gone",
                state="main is unchanged",
                hint="plan the request again with --supersede",
            ) from gone

    def _read_added(self, seen: Metadata, target: TargetPin, snapshot_id: str) -> StagedOutput:
        scope = Scope.of_pin(seen, target)
        files = seen.snapshots[snapshot_id].added
        return StagedOutput(
            snapshot_id, tuple(DataFile(one.path, len(one.rows), one.size, scope.only(one)) for one in files)
        )

    def find_candidate(self, target: TargetPin, branch: str) -> Candidate | None:
        """See the port."""
        seen = self._load(target)
        held = seen.refs.get(branch)
        snapshot = seen.snapshots[held.snapshot_id] if held else None
        if snapshot is None or snapshot.summary.get("errata.candidate") != branch:
            return None
        return Candidate(branch, snapshot.summary["errata.base"], snapshot.snapshot_id)

    def make_candidate(
        self,
        target: TargetPin,
        run_id: str,
        branch: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        keep_days: int,
    ) -> Candidate:
        """See the port."""
        if found := self.find_candidate(target, branch):
            return found
        table = self.lake.table(target.staging.table)

        def act(draft: Draft) -> None:
            seen, scope = draft.seen, Scope.of_pin(draft.seen, target)
            run_head = seen.refs.get(run_branch(run_id))
            if seen.head is None or run_head is None:
                raise RunExpired(
                    f"the run branch {run_branch(run_id)} of {target.staging.table} is gone", state="main is unchanged"
                )
            owner = self.lake.table(target.table).metadata
            base = owner.head.snapshot_id if owner.head else ""
            listed = seen.snapshots[run_head.snapshot_id].files
            if missing := [path for path in paths if path not in listed]:
                raise EngineError(
                    f"the candidate of {target.table} could not be assembled: {len(paths) - len(missing)} of "
                    f"{len(paths)} staged files found",
                    state="main is unchanged",
                )
            old = [file.path for file in scope.files(seen.head, partitions) if file.partition is not None]
            draft.set_ref(branch, seen.head.snapshot_id, is_branch=True, age_ms=keep_days * DAY_MS)
            told = {"errata.candidate": branch, "errata.run": run_id, "errata.base": base}
            draft.add_snapshot(branch, "overwrite", add=[listed[path] for path in paths], remove=old, summary=told)

        table.commit(act)
        made = self.find_candidate(target, branch)
        if made is None:
            raise EngineError(f"the candidate branch {branch} did not appear on {target.staging.table}")
        return made

    def drop_refs(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """See the port."""
        return drop_refs(self.lake.table(table), refs)

    def drop_shadow(self, target: TargetPin) -> bool:
        """See the port."""
        return target.shadow is not None and self.lake.tables.pop(target.shadow, None) is not None


def append_rows(
    table: MemoryTable, branch: str | None, rows: Iterable[Stored], mark: tuple[str, str], properties: Mapping[str, str]
) -> str:
    """Append rows to a branch in one commit with this mark, at most once; returns the snapshot."""
    files = table.write_files(rows)
    told = {
        "added-data-files": str(len(files)),
        "added-records": str(sum(len(file.rows) for file in files)),
        **properties,
        mark[0]: mark[1],
    }

    def act(draft: Draft) -> str:
        if found := find_marked(draft.seen, *mark):
            return found[0]
        if branch is not None and branch not in draft.seen.refs:
            raise RunExpired(
                f"branch {branch} of {table.metadata.table} was dropped while it was written",
                state="main is unchanged",
                hint="plan the request again with --supersede",
            )
        return draft.add_snapshot(branch or "main", "append", add=files, summary=told).snapshot_id

    return table.commit(act)


def _copy_empty(owner: MemoryTable, target: TargetPin, missing: Sequence[object]) -> MemoryTable:
    """An empty table with the target's columns, the new ones at their field ids, and the product's partitions."""
    old = owner.metadata
    new = [Field(one.field_id, one.name, one.type) for one in target.new_columns if one in missing]
    schema = Schema(old.schema.schema_id, (*old.schema.fields, *new))
    spec = Spec(old.spec.spec_id, Scope.of_pin(old, target).source, target.transform)
    made = replace(
        old, table=target.shadow or "", table_uuid=str(uuid.uuid4()), schemas=(schema,), specs=(spec,), snapshots={},
        refs={}, log=(), last_column_id=old.last_column_id + len(new),
    )  # fmt: skip
    return MemoryTable(made, owner.now_ms)


_conforms: type[StagingTable] = MemoryStaging
