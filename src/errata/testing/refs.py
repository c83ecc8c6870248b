"""Branches and tags of tables in memory: the guard, branches rooted on it, and tags that keep snapshots alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from errata.model.refs import FIRST_PROPERTY, GUARD
from errata.ports.tables import TagKeeper, TagOutcome
from errata.testing.lake import Lake
from errata.testing.metadata import MAIN, Metadata
from errata.testing.table import Draft, MemoryTable

DAY_MS = 86_400_000
FOR_EVER_MS = 36_500 * DAY_MS


@dataclass(frozen=True, slots=True)
class MemoryTags:
    """Tags of tables in memory."""

    lake: Lake

    def create(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """See the port."""
        return self._set(table, snapshot_id, tag, keep_ms, now_ms, may_move=False)

    def move(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """See the port."""
        return self._set(table, snapshot_id, tag, keep_ms, now_ms, may_move=True)

    def _set(self, table: str, snapshot_id: str, tag: str, keep_ms: int, now_ms: int, *, may_move: bool) -> TagOutcome:
        def act(draft: Draft) -> TagOutcome:
            held, snapshot = draft.seen.refs.get(tag), draft.seen.snapshots.get(snapshot_id)
            if held and held.snapshot_id == snapshot_id and not held.is_branch:
                return TagOutcome(table, tag, snapshot_id, "already")
            if snapshot is None:
                told = f"tag {tag} of {table}: snapshot {snapshot_id} is gone"
                return TagOutcome(table, tag, snapshot_id, "not_pinned", told)
            if held and (held.is_branch or not may_move):
                told = f"tag {tag} of {table} is on snapshot {held.snapshot_id}"
                return TagOutcome(table, tag, snapshot_id, "not_pinned", told)
            draft.set_ref(tag, snapshot_id, age_ms=keep_ms + max(0, now_ms - snapshot.at_ms))
            return TagOutcome(table, tag, snapshot_id, "moved" if held else "created")

        return self.lake.table(table).commit(act)

    def remove(self, table: str, tag: str) -> TagOutcome:
        """See the port."""

        def act(draft: Draft) -> TagOutcome:
            held = draft.seen.refs.get(tag)
            if held is None:
                return TagOutcome(table, tag, "", "absent")
            draft.drop_ref(tag)
            return TagOutcome(table, tag, held.snapshot_id, "removed")

        return self.lake.table(table).commit(act)

    def drop(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """See the port."""
        return drop_refs(self.lake.table(table), refs)

    def refs(self, table: str) -> dict[str, str]:
        """See the port."""
        return {name: ref.snapshot_id for name, ref in self.lake.table(table).metadata.refs.items()}

    def hidden(self, table: str) -> tuple[str, ...]:
        """See the port. A lake in memory shows all of them."""
        self.lake.table(table)
        return ()

    def snapshot_exists(self, table: str, snapshot_id: str) -> bool:
        """See the port."""
        return snapshot_id in self.lake.table(table).metadata.snapshots


def drop_refs(table: MemoryTable, refs: Sequence[str]) -> tuple[str, ...]:
    """Remove branches and tags in one commit, and return those that existed."""

    def act(draft: Draft) -> tuple[str, ...]:
        held = tuple(ref for ref in refs if ref in draft.seen.refs)
        for ref in held:
            draft.drop_ref(ref)
        return held

    return table.commit(act)


def ensure_guard(table: MemoryTable) -> tuple[str, bool]:
    """The guard's snapshot and whether it was created: a branch whose head has neither a parent nor files."""

    def act(draft: Draft) -> tuple[str, bool]:
        if draft.seen.head is None:
            draft.add_snapshot(MAIN, "append", summary={FIRST_PROPERTY: "true"})
        elif (found := _find_guard(draft.seen)) is not None:
            return found, False
        root = draft.add_snapshot(None, "append")
        draft.set_ref(GUARD, root.snapshot_id, is_branch=True, age_ms=FOR_EVER_MS, snapshot_age_ms=FOR_EVER_MS)
        return root.snapshot_id, True

    return table.commit(act)


def _find_guard(seen: Metadata) -> str | None:
    held = seen.refs.get(GUARD)
    root = seen.snapshots[held.snapshot_id] if held else None
    return root.snapshot_id if root and not root.files and root.parent_id is None else None


def open_branch(table: MemoryTable, branch: str, days: int) -> str:
    """Open an empty branch rooted on the guard, unless it exists; returns its head."""
    guard, _ = ensure_guard(table)

    def act(draft: Draft) -> str:
        if branch in draft.seen.refs:
            return draft.seen.refs[branch].snapshot_id
        draft.set_ref(branch, guard, is_branch=True, age_ms=days * DAY_MS, snapshot_age_ms=FOR_EVER_MS)
        return draft.add_snapshot(branch, "append", summary={"errata.branch": branch}).snapshot_id

    return table.commit(act)


def find_marked(metadata: Metadata, key: str, value: str) -> list[str]:
    """Snapshots whose summary has this property, oldest first."""
    return [one.snapshot_id for one in metadata.snapshots.values() if one.summary.get(key) == value]


def compute_age(metadata: Metadata, snapshot_id: str, days: int, now_ms: int) -> int:
    """The age that keeps a ref on this snapshot for this many days from now."""
    return days * DAY_MS + max(0, now_ms - metadata.snapshots[snapshot_id].at_ms)


_conforms: type[TagKeeper] = MemoryTags
