"""Branches and tags on the target: the guard, retention that really lasts, idempotent creation and removal.

Retention counts from the snapshot's timestamp and not from the ref's creation, so every age set here is the wanted
time plus the age of the snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from errata.engines.iceberg.java import JavaIceberg
from errata.engines.spark.causes import cause_of, meaning
from errata.errors import EngineError, StorageRefused
from errata.model.refs import GUARD

__all__ = [
    "DAY_MS",
    "GUARD",
    "age_for",
    "drop_refs",
    "ensure_branch",
    "ensure_guard",
    "main_head",
    "names_of",
    "ref_of",
    "retrying",
]


DAY_MS = 86_400_000
FOR_EVER_DAYS = 36_500
T = TypeVar("T")


def ref_of(table: Any, name: str) -> str | None:
    """The snapshot a ref points to; a table may have thousands of refs, and each costs a call from here."""
    ref = table.refs().get(name)
    return None if ref is None else str(ref.snapshotId())


def names_of(java: JavaIceberg, table: Any) -> frozenset[str]:
    """Names of all refs, main included, in one call."""
    return frozenset(str(java.jvm.java.lang.String.join("\n", table.refs().keySet())).split("\n")) - {""}


def main_head(table: Any) -> str | None:
    """Main's current snapshot, if it has one."""
    snapshot = table.currentSnapshot()
    return None if snapshot is None else str(snapshot.snapshotId())


def age_for(table: Any, snapshot_id: str, days: int) -> int:
    """The max-ref-age that keeps a ref on this snapshot for ``days`` from now."""
    age = max(0, int(time.time() * 1000) - table.snapshot(int(snapshot_id)).timestampMillis())
    return int(days * DAY_MS + age)


def retrying(act: Callable[[], T], attempts: int = 8) -> T:
    """Repeat an idempotent act that reloads the table itself, while other writers move the pointer."""
    retry = Retrying(
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        retry=retry_if_exception(_is_lost_race),
        reraise=True,
    )
    try:
        return retry(act)
    except Exception as error:
        if isinstance(meaning(error, "", None), StorageRefused):
            raise StorageRefused(
                f"the table's metadata could not be written: {cause_of(error)}",
                state="this step changed nothing; what was staged or published before is kept",
                hint="make room or mend the permission, then repeat the command: it goes on where it stopped",
            ) from error
        if not _is_lost_race(error):
            raise
        raise EngineError(
            f"the table moved during each of {attempts} tries to change its branches and tags",
            state="main is unchanged",
            hint="repeat the command when fewer others commit",
        ) from error


def _is_lost_race(error: BaseException) -> bool:
    # Spark's own wrapper drops the Java object, so the text is all there is
    text = f"{getattr(error, 'java_exception', '')} {error}"
    return "CommitFailedException" in text or "PendingUpdateFailedException" in text or "SQLITE_BUSY" in text


def ensure_guard(java: JavaIceberg, name: str) -> tuple[str, bool]:
    """The guard: a branch whose head has no parent and no files; root of all our branches.

    Its presence alone makes every Java expiry walk what is reachable instead of trusting what commits said they
    removed, which after a rollback would delete live files.
    """
    if found := _empty_root(java.load(name)):
        return found, False
    if main_head(java.load(name)) is None:
        retrying(lambda: _first_snapshot(java, name))
    retrying(lambda: _make_guard(java, name))
    found = _empty_root(java.load(name))
    if found is None:
        raise EngineError(f"branch {GUARD} of {name} could not be made", state="main is unchanged")
    return found, True


def _first_snapshot(java: JavaIceberg, name: str) -> None:
    table = java.load(name)
    if main_head(table) is None:
        table.newAppend().commit()


def _make_guard(java: JavaIceberg, name: str) -> None:
    """Delete everything, then append nothing, in one commit; then forget the snapshot in between."""
    table, transaction = java.begin(name)
    if _empty_root(table):
        return
    if _needs_content(table):
        everything = java.jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        transaction.newDelete().deleteFromRowFilter(everything).toBranch(GUARD).commit()
        transaction.newAppend().toBranch(GUARD).commit()
        age = FOR_EVER_DAYS * DAY_MS
        transaction.manageSnapshots().setMaxRefAgeMs(GUARD, age).setMaxSnapshotAgeMs(GUARD, age).commit()
        transaction.commitTransaction()
        table = java.load(name)
    parent = table.snapshot(int(ref_of(table, GUARD) or 0)).parentId()
    heads = {ref_of(table, ref) for ref in names_of(java, table)} if parent is not None else set()
    if parent is not None and str(parent) not in heads:
        _forget_snapshot(java, table, parent)


def _needs_content(table: Any) -> bool:
    """Whether the guard is missing or still lists files; a parent alone is only forgotten."""
    head = ref_of(table, GUARD)
    snapshot = table.snapshot(int(head)) if head else None
    return snapshot is None or bool(snapshot.allManifests(table.io()).size())


def _empty_root(table: Any) -> str | None:
    """The guard's snapshot, if it has neither files nor a parent."""
    if _needs_content(table):
        return None
    head = ref_of(table, GUARD)
    parent = table.snapshot(int(head or 0)).parentId()
    return head if parent is None or table.snapshot(parent) is None else None


def _forget_snapshot(java: JavaIceberg, table: Any, snapshot_id: int) -> None:
    # expireSnapshots() would also apply the table's own age limits to everything else; this takes out one snapshot
    operations = table.operations()
    base = operations.refresh()
    ids = java.jvm.java.util.HashSet()
    ids.add(snapshot_id)
    operations.commit(base, java.jvm.org.apache.iceberg.TableMetadata.buildFrom(base).removeSnapshots(ids).build())


def ensure_branch(java: JavaIceberg, name: str, branch: str, snapshot_id: str, days: int) -> None:
    """A branch at this snapshot that keeps every one of its snapshots for ``days``; left alone when it exists."""

    def act() -> None:
        table = java.load(name)
        if ref_of(table, branch) is not None:
            return
        age = age_for(table, snapshot_id, days)
        manage = table.manageSnapshots().createBranch(branch, int(snapshot_id))
        manage.setMaxRefAgeMs(branch, age).setMaxSnapshotAgeMs(branch, FOR_EVER_DAYS * DAY_MS).commit()

    retrying(act)


def drop_refs(java: JavaIceberg, name: str, refs: Iterable[str]) -> tuple[str, ...]:
    """Remove branches and tags in one commit; those that are gone already are left out. Answers what was removed."""

    def act() -> tuple[str, ...]:
        table = java.load(name)
        present = table.refs()
        found = tuple(ref for ref in refs if present.containsKey(ref))
        if not found:
            return ()
        manage = table.manageSnapshots()
        for ref in found:
            manage = manage.removeBranch(ref) if present.get(ref).isBranch() else manage.removeTag(ref)
        manage.commit()
        return found

    return retrying(act)
