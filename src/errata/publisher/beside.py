"""Publish to a table beside the target: intent, rows on a branch, one append that shows them, confirmation.

The target is examined as for a replacement, and not touched. The append carries the publication's own tag, so it lands
at most once, a late one is kept out by a fence, and what became of it is told by looking, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from errata.errors import EngineError, ErrataError
from errata.failpoints import failpoint
from errata.publisher.ports import SCOPE, BesideTable, ContentPort, IntentLog, PublishTable, scope_of
from errata.publisher.replace import Examined, Replaced, Replacement, detail_of, examine, first_line, need_open, settle
from errata.publisher.wording import told_error

__all__ = ["Rows", "append_beside"]

_DIGEST = "errata.candidate-digest"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for a table beside the target; ``stage`` writes them to a branch, and answers what the record should say.

    ``adds_up``: readers add the rows up, so those of one publication may not be there twice.
    """

    table: str
    stage: Callable[[str, str], Mapping[str, Any]]  # publication id, branch
    adds_up: bool = False


def append_beside(
    order: Replacement,
    rows: Rows,
    table: PublishTable,
    beside: BesideTable,
    content: ContentPort,
    log: IntentLog,
) -> Replaced:
    """One append; raises ``PublishConflict`` when live rows of the scope are not what was judged against."""
    found = _looked_at(order, table, content)
    if rows.adds_up and (known := _unrecorded(order, rows.table, beside, log)):
        publication_id, landed = known["errata.publication"], known["snapshot_id"]
        log.restore(publication_id, landed, detail_of(order, found))
        return Replaced(publication_id, landed, found.snapshot_id, 0, 0, found.compacted, 0)
    publication_id = log.intend(detail_of(order, found))
    failpoint(f"{order.kind}.after_intent")
    landing = replace(order.target, table=rows.table)
    written = 0
    try:
        need_open(order, table.look(landing, publication_id))
        branch = beside.open_branch(rows.table, publication_id)
        told = rows.stage(publication_id, branch)
        staged = beside.staged(rows.table, branch)
        written = staged.files
        # the last look before the commit: it is on another table, so the two cannot be one
        found = _looked_at(order, table, content)
        log.update(publication_id, {**detail_of(order, found), **told, "data_files": staged.files})
        log.last_look()
        failpoint(f"{order.kind}.before_commit")
        landed = beside.land(rows.table, publication_id, branch, _properties(order, publication_id))
        failpoint(f"{order.kind}.after_commit")
        log.committed(publication_id, landed)
        failpoint(f"{order.kind}.after_record")
    except Exception as error:
        settled = settle(landing, publication_id, order.partitions, table, log, reason=first_line(error))
        if settled is None:
            if isinstance(error, ErrataError):
                raise
            raise EngineError(
                f"the {order.kind} of {order.run_id} failed: {first_line(error)}", state="nothing was published"
            ) from error
        landed = settled
    return Replaced(publication_id, landed, found.snapshot_id, 0, written, found.compacted, written)


def _looked_at(order: Replacement, table: PublishTable, content: ContentPort) -> Examined:
    """What the target holds now, with nothing to remove; for a rollback nothing depends on it."""
    if order.kind != "publish":
        return Examined("", (), ())
    return replace(examine(order, table.version(order.target), content), remove=())


def _unrecorded(order: Replacement, table: str, beside: BesideTable, log: IntentLog) -> Mapping[str, str] | None:
    """What this run told of these partitions last, if that is what is ordered and the ledger lacks it; raises
    ``PublishConflict`` when it was told of another candidate."""
    scope = scope_of(order.partitions)
    told = [
        one
        for one in beside.of_run(table, order.run_id)
        if one.get(SCOPE) == scope and not log.knows(one.get("errata.publication", ""))
    ]
    if not told or told[-1].get("errata.kind") != order.kind:
        return None
    if told[-1].get(_DIGEST) != order.properties.get(_DIGEST):
        raise told_error(order.run_id, table, told[-1]["errata.publication"])
    return told[-1]


def _properties(order: Replacement, publication_id: str) -> dict[str, str]:
    return {
        "errata.publication": publication_id,
        "errata.run": order.run_id,
        "errata.manifest": order.manifest_digest,
        "errata.kind": order.kind,
        SCOPE: scope_of(order.partitions),
        **order.properties,
    }
