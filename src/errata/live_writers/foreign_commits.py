"""Gaps: commits on a governed table that neither a run nor a registered live job made, and what closed them. Pure.

A gap is open in a partition until someone answers for its content: an attestation of main at that commit or later, or a
correction that has replaced the partition since and is still current. A later foreign commit is a gap of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.table import Commit, History, Touch

LIVE_PROPERTY = "errata.live"
"""Snapshot property with the name of the live job that made a commit; the lease of the job gives it to set."""
_NAMES = (LIVE_PROPERTY, "app-name", "app-id", "spark.app.id")
_COMPACTION = "replace"
_PUBLICATION = "errata.publication"


@dataclass(frozen=True, slots=True)
class Answer:
    """A run that answers for the content of partitions as main had it at a snapshot."""

    run_id: str
    snapshot_id: str
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gap:
    """A commit that nobody is known to have made; ``closed_by`` has the run for each partition that is closed.

    ``is_whole``: the commit may have touched any partition, so that only a run over the whole table could close it.
    """

    commit: Commit
    partitions: tuple[str, ...]
    closed_by: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False

    @property
    def open(self) -> tuple[str, ...]:
        """Partitions that nobody answers for."""
        return tuple(name for name in self.partitions if name not in self.closed_by)


def find_live_job(summary: Mapping[str, str], registered: Collection[str]) -> str | None:
    """The registered live job that made a commit, by its own property or by the application that engines record.

    >>> find_live_job({"app-name": "finsight-daily", "app-id": "local-17"}, ["finsight-daily"])
    'finsight-daily'
    """
    names = (summary.get(key) for key in _NAMES)
    return next((name for name in names if name is not None and name in registered), None)


def is_maintenance(commit: Commit) -> bool:
    """Whether a commit rewrote files without changing rows, as compaction does: it never adds rows to a partition."""
    return commit.operation == _COMPACTION and all(_keeps_rows(touch) for touch in commit.touched.values())


def _keeps_rows(touch: Touch) -> bool:
    # a compaction that applies delete files writes fewer rows than the files it removes had
    return touch.added_rows <= touch.removed_rows


def find_foreign_commits(
    history: History, published: Mapping[str, str | None], registered: Collection[str]
) -> Iterator[Commit]:
    """Commits that no run of this ledger and no registered live job made, newest first.

    ``published`` maps publications of the ledger to their snapshot, None while one is open: a commit that only claims
    to be a publication is not one.
    """
    for commit in history.commits:
        name = commit.summary.get(_PUBLICATION)
        is_ours = name is not None and name in published and published[name] in (None, commit.snapshot_id)
        if not is_ours and find_live_job(commit.summary, registered) is None:
            yield commit


def find_gaps(
    commits: Sequence[Commit], line: Sequence[str], partitions: Collection[str], answers: Sequence[Answer]
) -> tuple[Gap, ...]:
    """The gaps among foreign commits, with the runs that closed them; ``line`` is main from its head back.

    ``partitions`` are those that the table has: where a commit may have touched any, all of them need an answer.
    """
    age = {snapshot: n for n, snapshot in enumerate(line)}
    gaps = []
    for commit in commits:
        if is_maintenance(commit):
            continue
        names = tuple(sorted({*commit.touched, *(partitions if commit.touches_everything else ())}))
        later = [one for one in answers if age.get(one.snapshot_id, len(line)) <= age[commit.snapshot_id]]
        closed = {name: one.run_id for name in names for one in later if name in one.partitions}
        gaps.append(Gap(commit, names, closed, commit.touches_everything))
    return tuple(gaps)
