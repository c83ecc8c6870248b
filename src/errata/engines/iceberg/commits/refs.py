"""Branches and tags of a table: the guard, correct retention, idempotent creation and removal.

Iceberg counts retention from the timestamp of a ref's snapshot. A branch opened here starts with its own snapshot, so
its age is exactly the wanted time; a tag on an older snapshot gets that snapshot's age added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from errata.engines.failures import cause_of, classify_error
from errata.engines.iceberg.commits.java import JavaIceberg, parse_rows
from errata.engines.retry import TRIES, retry
from errata.errors import EngineError, RunExpired, StorageRefused
from errata.model.refs import DAY_MS, FIRST_PROPERTY, FOR_EVER_DAYS, GUARD, pub_tag

T = TypeVar("T")
_APPEND_TRIES = 30  # more than usual: the rows are already computed, and several workers append to the same branch
_LOST_RACE = (
    "CommitFailedException",
    "PendingUpdateFailedException",
    "SQLITE_BUSY",
    "TableAlreadyExistsException",
    # to CREATE OR REPLACE VIEW, when its own request landed and was sent again, or another was faster
    "View already exists",
    "View was updated concurrently",
    "Cannot set last version id",
)
_NO_CLEAR_ANSWER = ("CommitStateUnknownException", "ServiceFailureException", "RESTException", "UncheckedSQLException")


def find_ref(table: Any, name: str) -> str | None:
    """The snapshot of one ref. Looked up by name, because a table may have thousands of refs and each costs a call."""
    ref = table.refs().get(name)
    return None if ref is None else str(ref.snapshotId())


def list_refs(java: JavaIceberg, table: Any) -> frozenset[str]:
    """Names of all refs, main included, in one call."""
    return frozenset(str(java.find_class("java.lang.String").join("\n", table.refs().keySet())).split("\n")) - {""}


def main_head(table: Any) -> str | None:
    """Main's current snapshot; None for an empty table."""
    snapshot = table.currentSnapshot()
    return None if snapshot is None else str(snapshot.snapshotId())


def compute_ref_age(table: Any, snapshot_id: str, days: int) -> int:
    """The max-ref-age that keeps a ref on this snapshot for ``days`` from now."""
    age = max(0, int(time.time() * 1000) - table.snapshot(int(snapshot_id)).timestampMillis())
    return int(days * DAY_MS + age)


def find_marked_snapshots(java: JavaIceberg, table: Any, key: str, value: str) -> tuple[str, ...]:
    """Snapshots whose summary has this property."""
    return tuple(row[0] for row in parse_rows(java.bulk.snapshots(table)) if f"{key}={value}" in row[4:])


def find_publication(java: JavaIceberg, table: Any, publication_id: str) -> tuple[str | None, bool]:
    """The snapshot of a publication that landed, or None; and whether a fence keeps it out.

    Found by its tag, or without a tag by the table's snapshots. The tag counts only if its snapshot carries this
    publication's id; otherwise it is a fence.
    """
    tagged = find_ref(table, pub_tag(publication_id))
    if tagged is None:
        return next(iter(find_marked_snapshots(java, table, "errata.publication", publication_id)), None), False
    is_own = table.snapshot(int(tagged)).summary().get("errata.publication") == publication_id
    return (tagged, False) if is_own else (None, True)


def retry_commit(act: Callable[[], T], attempts: int = TRIES) -> T:
    """Retry a commit until the catalog gives a clear answer.

    ``act`` must reload the table and first look for its own effect, because an earlier try may have landed.
    """
    try:
        return retry(act, lambda error: _mentions_any(error, *_LOST_RACE, *_NO_CLEAR_ANSWER), tries=attempts)
    except Exception as error:
        if isinstance(classify_error(error, "", None), StorageRefused):
            raise StorageRefused(
                f"the table's metadata could not be written: {cause_of(error)}",
                state="this step changed nothing; what was staged or published before is kept",
                hint="free space or fix the permission, then repeat the command: it continues where it stopped",
            ) from error
        if _mentions_any(error, *_LOST_RACE):
            raise EngineError(
                f"other commits came first in each of {attempts} tries to change the table's branches and tags",
                state="main is unchanged",
                hint="repeat the command when the table is less busy",
            ) from error
        if _mentions_any(error, *_NO_CLEAR_ANSWER):
            raise EngineError(
                f"the catalog gave no clear answer in {attempts} tries: {cause_of(error)}",
                state="main is unchanged",
                hint="repeat the command once the catalog answers: it looks for what has landed first",
            ) from error
        raise


def _mentions_any(error: BaseException, *names: str) -> bool:
    # Spark's wrapper drops the Java exception, so only the text is left
    text = f"{getattr(error, 'java_exception', '')} {error}"
    return any(name in text for name in names)


def ensure_guard(java: JavaIceberg, name: str) -> tuple[str, bool]:
    """Return the guard's snapshot, creating it if needed, and whether it was created.

    The guard is a branch whose head has no parent and no files; all our branches are rooted on it. Its presence makes
    every Java expiry walk the reachable files instead of trusting what commits say they removed, which after a rollback
    would delete live files.
    """
    table = java.load(name)
    is_empty = main_head(table) is None  # possible even with a guard: replacing a table keeps its other refs
    if not is_empty and (found := _find_empty_root(table)):
        return found, False
    if is_empty:
        retry_commit(lambda: _create_first_snapshot(java, name))
    return retry_commit(lambda: _make_guard(java, name)), True


def _create_first_snapshot(java: JavaIceberg, name: str) -> None:
    with java.commit(name) as commit:
        if main_head(commit.table()) is None:
            commit.startAppend(None)
            commit.set(FIRST_PROPERTY, "true")
            commit.finish()
            commit.swap()


def _make_guard(java: JavaIceberg, name: str) -> str:
    """Create the guard, or remove its head's parent, in one commit.

    A new guard is an empty root: delete everything, append nothing, and forget the snapshot in between.
    """
    with java.commit(name) as commit:
        table = commit.table()
        if found := _find_empty_root(table):
            return found
        head = find_ref(table, GUARD)
        if _needs_new_guard(table):
            if head is not None:
                commit.removeRef(GUARD)
            head = str(commit.emptyRoot(GUARD))
            commit.setAge(GUARD, FOR_EVER_DAYS * DAY_MS)
            commit.setSnapshotAge(GUARD, FOR_EVER_DAYS * DAY_MS)
        else:
            commit.forget(table.snapshot(int(head or 0)).parentId())
        commit.swap()
        return str(head)


def _needs_new_guard(table: Any) -> bool:
    """Whether the guard is missing, lists files or cannot be read; a guard that only has a parent can be kept."""
    head = find_ref(table, GUARD)
    return head is None or count_manifests(table, head) != 0


def count_manifests(table: Any, snapshot_id: str) -> int | None:
    """Number of manifests of a snapshot; None if its manifest list is gone."""
    from py4j.protocol import Py4JJavaError

    try:
        return int(table.snapshot(int(snapshot_id)).allManifests(table.io()).size())
    except Py4JJavaError as problem:
        if "NotFoundException" not in str(problem.java_exception.toString()):
            raise
        return None


def _find_empty_root(table: Any) -> str | None:
    """The guard's snapshot; None unless it has neither files nor a parent."""
    if _needs_new_guard(table):
        return None
    head = find_ref(table, GUARD)
    parent = table.snapshot(int(head or 0)).parentId()
    return head if parent is None or table.snapshot(parent) is None else None


def open_branch(java: JavaIceberg, name: str, branch: str, days: int) -> str:
    """Open an empty branch that keeps all its snapshots for ``days``; an existing branch is left unchanged."""
    guard, _ = ensure_guard(java, name)

    def act() -> str:
        with java.commit(name) as commit:
            if (found := find_ref(commit.table(), branch)) is not None:
                return found
            commit.createBranch(branch, int(guard))
            # its own head, because with the guard as head the guard's age would have to be added to the retention
            commit.startAppend(branch)
            commit.set("errata.branch", branch)
            head = str(commit.finish())
            commit.setAge(branch, days * DAY_MS)
            commit.setSnapshotAge(branch, FOR_EVER_DAYS * DAY_MS)
            commit.swap()
            return head

    return retry_commit(act)


def append_written_files(
    java: JavaIceberg, name: str, branch: str | None, written: str, mark: tuple[str, str], properties: dict[str, str]
) -> str:
    """Commit the files that Spark wrote under a name to a branch, or to main; returns the snapshot.

    ``mark`` is a property that at most one append ever carries: if such an append has landed before, its snapshot is
    returned.
    """

    def act() -> str:
        with java.commit(name) as commit:
            table = commit.table()
            if found := find_marked_snapshots(java, table, *mark):
                return found[0]
            # Iceberg would recreate a dropped branch from main, and the branch would hold all of main's files
            if branch is not None and find_ref(table, branch) is None:
                raise RunExpired(
                    f"branch {branch} of {name} was dropped while it was written",
                    state="main is unchanged",
                    hint="plan the request again with --supersede",
                )
            commit.startAppend(branch)
            commit.addWritten(written)
            for key, value in {**properties, mark[0]: mark[1]}.items():
                commit.set(key, value)
            made = str(commit.finish())
            commit.swap()
            return made

    return retry_commit(act, _APPEND_TRIES)


def drop_refs(java: JavaIceberg, name: str, refs: Iterable[str]) -> tuple[str, ...]:
    """Remove branches and tags in one commit; returns those that existed."""
    wanted = tuple(refs)
    removed: list[str] = []

    def act() -> tuple[str, ...]:
        with java.commit(name) as commit:
            present = commit.table().refs()
            found = tuple(ref for ref in wanted if present.containsKey(ref))
            for ref in found:
                commit.removeRef(ref)
            if found:
                # before the swap, so that they are returned even if the answer to a landed commit is lost
                removed[:] = found
                commit.swap()
        return tuple(removed)

    return retry_commit(act)
