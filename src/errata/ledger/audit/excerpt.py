"""Audit excerpt for the evidence of one run: its own entries in full, entries of other runs only as links.

The excerpt runs from the run's first entry to the newest of the ledger without a gap. Each line allows its hash to be
computed again: it holds the exact text that was hashed, or only the digest of the content.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from errata.canonical import canonical_bytes
from errata.errors import AuditBroken
from errata.ledger.audit.chain import content_bytes, entry_from_row, entry_hash, link_bytes
from errata.ledger.schema.definition import audit, audit_head, outbox_item
from errata.model.consumer.outbox import Effect
from errata.model.copy.receipt import BASELINE

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class AuditExcerpt:
    """Entries ``first`` to ``seq``; ``after`` is the hash before the first, ``hash`` that of the last."""

    first: int
    after: str
    seq: int
    hash: str
    lines: tuple[Mapping[str, Any], ...]

    def text(self) -> bytes:
        """JSON lines: first where the excerpt begins, then one entry per line."""
        told = ({"after": self.after, "first": self.first}, *self.lines)
        return b"".join(canonical_bytes(line) + b"\n" for line in told)


def load_excerpt(
    conn: Connection,
    run_id: str,
    campaign_id: str | None = None,
    decided: Collection[int] = (),
    copies: Collection[str] = (),
) -> AuditExcerpt:
    """The audit from the first entry of this run to the head; raises when the chain is broken.

    Entries of the campaign that the run is a member of are whole, too: they have its approvals. So are those of the
    decisions (``decided``) on the standing approval that covers it, which are older, and what people accepted in
    ``copies`` since the run began.
    """
    own = {run_id, *([campaign_id] if campaign_id else [])}
    began = conn.execute(select(func.min(audit.c.seq)).where(audit.c.run_id.in_(sorted(own)))).scalar_one()
    first = min([began, *decided])
    head = conn.execute(select(audit_head)).one()
    after, previous = None, ""
    lines: list[Mapping[str, Any]] = []
    for row in _iterate_from(conn, first):
        after = row.previous if after is None else after
        if (row.seq, row.previous) != (first + len(lines), previous or row.previous):
            raise _broken_error(first + len(lines))
        is_whole = row.run_id in own or row.seq in decided or _is_baseline_of(row, copies)
        lines.append(_build_line(row, is_whole=is_whole))
        previous = row.hash
    if (first + len(lines) - 1, previous) != (head.seq, head.hash):
        raise _broken_error(first + len(lines))
    return AuditExcerpt(first, after or "", head.seq, head.hash, tuple(lines))


def list_copies(conn: Connection, run_id: str) -> frozenset[str]:
    """Copies that the run owes something, or has owed."""
    c = outbox_item.c
    query = select(c.consumer).distinct().where(c.run_id == run_id, c.effect == Effect.COPY.value)
    return frozenset(conn.execute(query).scalars())


def _iterate_from(conn: Connection, first: int) -> Iterator[Row[Any]]:
    query = select(audit).where(audit.c.seq >= first).order_by(audit.c.seq)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        yield from rows


def _is_baseline_of(row: Row[Any], copies: Collection[str]) -> bool:
    return row.run_id is None and row.action == BASELINE and json.loads(row.body).get("copy") in copies


def _build_line(row: Row[Any], *, is_whole: bool) -> Mapping[str, Any]:
    entry = entry_from_row(row)
    if row.hash != entry_hash(entry):
        raise _broken_error(row.seq)
    if is_whole:
        return {"seq": row.seq, "content": content_bytes(entry).decode()}
    link = json.loads(link_bytes(entry))
    return {"seq": row.seq, "run": link["run"], "content_sha256": link["content"]}


def _broken_error(seq: int) -> AuditBroken:
    return AuditBroken(
        f"evidence was refused; expected an audit that links up, found that entry {seq} does not",
        state="nothing was written",
        hint="errata audit verify",
    )
