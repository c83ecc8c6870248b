"""Did anyone but us change these partitions? Pure.

Files that differ from the expected set are explained by the commits since the base: rewrites whose row counts balance
are compaction; anything else is a write. Where the commits cannot tell (history was cut, main was rolled back, a
rewrite that does not balance, partitions that share files with others), only the content can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from errata.model.table import Commit, FileSets, History

__all__ = ["Judgement", "differing", "judge", "writers"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of the partitions whose files differ from the expected set."""

    compacted: tuple[str, ...] = ()
    written: Mapping[str, tuple[Commit, ...]] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()
    suspects: Mapping[str, tuple[Commit, ...]] = field(default_factory=dict)  # of unclear ones: who may have written

    def settled(self, same_content: Iterable[str]) -> Judgement:
        """The judgement once the content of the unclear partitions was compared."""
        same = set(same_content)
        changed = {name: self.suspects.get(name, ()) for name in self.unclear if name not in same}
        return Judgement((*self.compacted, *(n for n in self.unclear if n in same)), {**self.written, **changed})

    def and_of(self, other: Judgement) -> Judgement:
        """Both, where they are about other partitions."""
        return Judgement(
            (*self.compacted, *other.compacted),
            {**self.written, **other.written},
            (*self.unclear, *other.unclear),
            {**self.suspects, **other.suspects},
        )


def differing(expected: FileSets, live: FileSets) -> tuple[str, ...]:
    """Partitions whose live files are not exactly the expected ones."""
    names = [name for name in expected if _paths(expected, name) != _paths(live, name)]
    return tuple(names)


def writers(partition: str, history: History, own: frozenset[str] = frozenset()) -> tuple[Commit, ...]:
    """The commits of others that touched a partition, newest first."""
    return tuple(
        commit
        for commit in history.commits
        if (commit.touches_everything or partition in commit.touched)
        and commit.summary.get("errata.publication") not in own
    )


def judge(
    changed: Iterable[str], history: History, own: frozenset[str] = frozenset(), *, shares_files: bool = False
) -> Judgement:
    """Tell compaction from writes for every partition that differs; ``own`` publications made the expected state.

    With ``shares_files`` a commit to a partition's files may be about rows of others, so it proves nothing.
    """
    compacted: list[str] = []
    unclear: list[str] = []
    written: dict[str, tuple[Commit, ...]] = {}
    suspects: dict[str, tuple[Commit, ...]] = {}
    for name in changed:
        commits = writers(name, history, own)
        if shares_files or not history.complete or not commits:
            unclear.append(name)
            suspects[name] = tuple(commit for commit in commits if commit.operation != "replace")
        elif any(commit.operation != "replace" for commit in commits):
            written[name] = tuple(commit for commit in commits if commit.operation != "replace")
        elif all(_balances(commit, name) for commit in commits):
            compacted.append(name)
        else:
            unclear.append(name)
    return Judgement(tuple(compacted), written, tuple(unclear), suspects if shares_files else {})


def _balances(commit: Commit, partition: str) -> bool:
    touch = commit.touched.get(partition)
    return touch is not None and touch.added_rows == touch.removed_rows and not touch.added_deletes


def _paths(sets: FileSets, partition: str) -> frozenset[tuple[str, str]]:
    return frozenset((file.content, file.path) for file in sets.get(partition, ()))
