"""Decide whether another writer changed these partitions. Pure.

Files that differ from the expected set are explained by the commits since the base: rewrites whose row counts balance
are compaction; anything else is a write. Where the commits cannot decide (history has expired, main was rolled back, a
rewrite does not balance, partitions share files), only a comparison of the content can.

New delete files are a conflict of their own: the rows they delete need not be in any live file, so neither files nor
content need to differ, and publishing over them would bring those rows back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from errata.model.table import Commit, FileSets, History, NewDelete


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """Classification of the partitions whose files differ from the expected set."""

    compacted: tuple[str, ...] = ()
    written: Mapping[str, tuple[Commit, ...]] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()
    suspects: Mapping[str, tuple[Commit, ...]] = field(default_factory=dict)  # unclear partition → possible writes

    def resolve_unclear(self, same_content: Iterable[str]) -> PartitionChanges:
        """Classify the unclear partitions after their content was compared."""
        same = set(same_content)
        changed = {name: self.suspects.get(name, ()) for name in self.unclear if name not in same}
        return PartitionChanges((*self.compacted, *(n for n in self.unclear if n in same)), {**self.written, **changed})

    def mark_written(self, written: Mapping[str, tuple[Commit, ...]]) -> PartitionChanges:
        """Mark these partitions as written; commits already known to have written a partition are kept."""
        return PartitionChanges(
            tuple(name for name in self.compacted if name not in written),
            {**written, **self.written},
            tuple(name for name in self.unclear if name not in written),
            self.suspects,
        )

    def combine_with(self, other: PartitionChanges) -> PartitionChanges:
        """Combine with the changes of other, disjoint partitions."""
        return PartitionChanges(
            (*self.compacted, *other.compacted),
            {**self.written, **other.written},
            (*self.unclear, *other.unclear),
            {**self.suspects, **other.suspects},
        )


def find_changed_partitions(expected: FileSets, live: FileSets) -> tuple[str, ...]:
    """Partitions whose live files are not exactly the expected ones."""
    names = [name for name in expected if _paths(expected, name) != _paths(live, name)]
    return tuple(names)


def find_deleted_partitions(
    deletes: Iterable[NewDelete], partitions: Iterable[str], expected: FileSets, own: frozenset[str] = frozenset()
) -> dict[str, tuple[Commit, ...]]:
    """Partitions that got delete files since the base, with the commits that added them where known.

    A position delete concerns rows of one file. Where its partition is uncertain, that file is a shared one, whose own
    deletes and content are compared instead. An equality delete concerns rows that any added file may bring back.
    """
    found: dict[str, dict[str, Commit]] = {}
    asked = set(partitions)
    known = {(name, file.path) for name in asked for file in expected.get(name, ()) if file.content != "data"}
    for delete in deletes:
        if delete.commit is not None and delete.commit.summary.get("errata.publication") in own:
            continue
        if delete.partition is None and delete.content == "position_deletes":
            continue
        for name in asked.intersection(delete.may_hit if delete.partition is None else (delete.partition,)):
            if (name, delete.path) not in known:
                commits = found.setdefault(name, {})
                commits |= {delete.commit.snapshot_id: delete.commit} if delete.commit else {}
    return {
        name: tuple(sorted(commits.values(), key=lambda one: one.at_ms, reverse=True))
        for name, commits in found.items()
    }


def find_writers(partition: str, history: History, own: frozenset[str] = frozenset()) -> tuple[Commit, ...]:
    """Commits of other writers that touched a partition, newest first."""
    return tuple(
        commit
        for commit in history.commits
        if (commit.touches_everything or partition in commit.touched)
        and commit.summary.get("errata.publication") not in own
    )


def classify_changes(
    changed: Iterable[str],
    history: History,
    expected: FileSets,
    live: FileSets,
    own: frozenset[str] = frozenset(),
    *,
    shares_files: bool = False,
) -> PartitionChanges:
    """Tell compaction from writes for every changed partition; ``own`` publications made the expected state.

    With ``shares_files`` a commit to a partition's files may concern rows of other partitions, so it proves nothing.
    """
    compacted: list[str] = []
    unclear: list[str] = []
    written: dict[str, tuple[Commit, ...]] = {}
    suspects: dict[str, tuple[Commit, ...]] = {}
    for name in changed:
        commits = find_writers(name, history, own)
        if shares_files or not history.complete or not commits:
            unclear.append(name)
            suspects[name] = tuple(commit for commit in commits if commit.operation != "replace")
        elif any(commit.operation != "replace" for commit in commits):
            written[name] = tuple(commit for commit in commits if commit.operation != "replace")
        # compaction keeps the number of rows: where it changed, a commit is missing from the history
        elif _count_rows(expected, name) == _count_rows(live, name) and all(_is_balanced(one, name) for one in commits):
            compacted.append(name)
        else:
            unclear.append(name)
    return PartitionChanges(tuple(compacted), written, tuple(unclear), suspects if shares_files else {})


def _is_balanced(commit: Commit, partition: str) -> bool:
    touch = commit.touched.get(partition)
    return touch is not None and touch.added_rows == touch.removed_rows and not touch.added_deletes


def _count_rows(sets: FileSets, partition: str) -> int:
    return sum(file.rows for file in sets.get(partition, ()) if file.content == "data")


def _paths(sets: FileSets, partition: str) -> frozenset[tuple[str, str]]:
    return frozenset((file.content, file.path) for file in sets.get(partition, ()))
