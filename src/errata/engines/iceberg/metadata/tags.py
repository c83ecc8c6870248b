"""Tags that keep pinned snapshots alive, created and removed with pyiceberg: no JVM, no data.

Creating and removing are idempotent and safe to repeat after a crash. A tag's age counts from its *snapshot's*
timestamp, so the snapshot's age is added to the wanted retention. If the catalog refuses tags, that is a warning: the
run continues and becomes ``expired`` if the snapshot is gone when needed. A catalog that accepts a tag but does not
keep it has its own outcome (``not_kept``), because nothing can be published there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from errata.engines.iceberg.metadata.tables import TableLoader, describe_error, is_driver_error
from errata.engines.retry import TRIES, retry
from errata.errors import EngineError, ErrataError
from errata.ports.tables import TagOutcome

if TYPE_CHECKING:
    from pyiceberg.table import Table


class IcebergTags:
    """Creates, removes and looks up tags."""

    def __init__(self, tables: TableLoader, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._tables = tables
        self._sleep = sleep

    def refs(self, table: str) -> dict[str, str]:
        """Every branch and tag with its snapshot id."""
        refs = self._tables.load(table).metadata.refs
        return {name: str(ref.snapshot_id) for name, ref in refs.items()}

    def hidden(self, table: str) -> tuple[str, ...]:
        """Branches and tags that the table has but its catalog does not show. Read-only."""
        from errata.engines.iceberg.metadata.catalog_probe import find_hidden_refs

        return find_hidden_refs(self._tables.load(table))

    def snapshot_exists(self, table: str, snapshot_id: str) -> bool:
        """Whether a pinned snapshot is still in the table's metadata."""
        return self._tables.load(table).metadata.snapshot_by_id(int(snapshot_id)) is not None

    def create(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """Tag a snapshot for ``keep_ms`` from now; ``already`` if the tag is on this snapshot."""

        def attempt(found: Table) -> TagOutcome:
            held, snapshot = found.metadata.refs.get(tag), found.metadata.snapshot_by_id(int(snapshot_id))
            if held and held.snapshot_id == int(snapshot_id):
                return TagOutcome(table, tag, snapshot_id, "already")
            if held or snapshot is None:
                what = f"is on snapshot {held.snapshot_id}" if held else "cannot be set: the snapshot is gone"
                return TagOutcome(table, tag, snapshot_id, "not_pinned", f"tag {tag} of {table} {what}")
            age = max(0, now_ms - snapshot.timestamp_ms)
            found.manage_snapshots().create_tag(int(snapshot_id), tag, max_ref_age_ms=keep_ms + age).commit()
            # some catalogs accept a tag but do not keep it, so read it back
            if tag not in self.refs(table):
                why = f"{table}: the catalog accepted tag {tag} and does not keep it"
                return TagOutcome(table, tag, snapshot_id, "not_kept", why)
            return TagOutcome(table, tag, snapshot_id, "created")

        return self._retry_commit(table, tag, snapshot_id, attempt)

    def move(self, table: str, snapshot_id: str, tag: str, *, keep_ms: int, now_ms: int) -> TagOutcome:
        """Move a tag to this snapshot in one commit, so that readers of the tag always find it."""
        from pyiceberg.table.refs import SnapshotRefType

        def attempt(found: Table) -> TagOutcome:
            held, snapshot = found.metadata.refs.get(tag), found.metadata.snapshot_by_id(int(snapshot_id))
            if snapshot is None:
                return TagOutcome(
                    table, tag, snapshot_id, "not_pinned", f"tag {tag} of {table}: snapshot {snapshot_id} is gone"
                )
            if held and held.snapshot_ref_type is not SnapshotRefType.TAG:
                return TagOutcome(table, tag, snapshot_id, "not_pinned", f"{tag} of {table} is a branch")
            if held and held.snapshot_id == int(snapshot_id):
                return TagOutcome(table, tag, snapshot_id, "already")
            age = max(0, now_ms - snapshot.timestamp_ms)
            found.manage_snapshots().create_tag(int(snapshot_id), tag, max_ref_age_ms=keep_ms + age).commit()
            return TagOutcome(table, tag, snapshot_id, "moved" if held else "created")

        return self._retry_commit(table, tag, snapshot_id, attempt)

    def remove(self, table: str, tag: str) -> TagOutcome:
        """Remove a tag; ``absent`` if it does not exist."""

        def attempt(found: Table) -> TagOutcome:
            held = found.metadata.refs.get(tag)
            if held is None:
                return TagOutcome(table, tag, "", "absent")
            found.manage_snapshots().remove_tag(tag).commit()
            return TagOutcome(table, tag, str(held.snapshot_id), "removed")

        return self._retry_commit(table, tag, "", attempt)

    def drop(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        """Remove branches and tags in one commit; returns those that existed."""
        dropped: tuple[str, ...] = ()

        def attempt(found: Table) -> TagOutcome:
            nonlocal dropped
            held = tuple(ref for ref in refs if ref in found.metadata.refs)
            if held:
                dropped = held
                manage = found.manage_snapshots()
                for ref in held:
                    manage = manage.remove_branch(ref)  # removes tags as well
                manage.commit()
            return TagOutcome(table, ", ".join(held), "", "removed" if held else "absent")

        made = self._retry_commit(table, ", ".join(refs), "", attempt)
        if made.outcome == "not_pinned":
            raise EngineError(made.warning or f"refs of {table} cannot be removed", table=table)
        return dropped

    def _retry_commit(
        self, table: str, tag: str, snapshot_id: str, attempt: Callable[[Table], TagOutcome]
    ) -> TagOutcome:
        from pyiceberg.exceptions import BadRequestError, ForbiddenError, UnauthorizedError

        refused = (BadRequestError, ForbiddenError, NotImplementedError, PermissionError, UnauthorizedError)
        try:
            # each try reloads the table and sees whether an earlier one landed after all
            return retry(
                lambda: attempt(self._tables.load(table)),
                lambda error: is_driver_error(error) and not isinstance(error, refused),
                longest_wait=6.4,
                sleep=self._sleep,
            )
        except refused as no:
            return TagOutcome(
                table, tag, snapshot_id, "not_pinned", f"{table} cannot be tagged: {type(no).__name__} {no}"
            )
        except ErrataError:
            raise
        except Exception as error:
            raise EngineError(
                f"{tag} of {table} could not be committed in {TRIES} tries; the last ended with "
                f"{describe_error(error)}",
                state="no data was changed",
                table=table,
            ) from error
