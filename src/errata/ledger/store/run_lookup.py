"""Find a run by what a person types: its id, or any part of the id that no other run has. Reads the ledger."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlalchemy import Connection, select

from errata.errors import NotFound
from errata.ledger.records import RunRecord
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import run_from_row

_LISTED = 8
"""Most runs to list when a part of an id fits several."""
_NEWEST_FIRST = (run_table.c.planned_at.desc(), run_table.c.run_id)


def resolve_run(conn: Connection, text: str) -> RunRecord:
    """The run with this id, or the only one whose id contains this text; a full id always wins."""
    # run ids are printable ASCII, and not every database accepts every other text as a parameter
    if not text or not text.isascii() or not text.isprintable():
        raise _unknown_error(conn, text)
    if exact := conn.execute(select(run_table).where(run_table.c.run_id == text)).first():
        return run_from_row(exact)
    like = run_table.c.run_id.contains(text, autoescape=True)
    rows = conn.execute(select(run_table).where(like).order_by(*_NEWEST_FIRST))
    # LIKE of SQLite ignores case
    found = [run_from_row(row) for row in rows if text in row.run_id]
    if not found:
        raise _unknown_error(conn, text)
    if len(found) > 1:
        raise _ambiguous_error(text, found)
    return found[0]


def _ambiguous_error(text: str, found: Sequence[RunRecord]) -> NotFound:
    listed = [f"  {run.run_id}   {run.state.value}   {run.product}" for run in found[:_LISTED]]
    listed += [f"  and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return NotFound(
        "\n".join([f"{text!r} fits {len(found)} runs; expected a part of the id that only one of them has", *listed]),
        state="nothing was changed",
        hint=f"the last {_count_distinguishing(found)} characters of the id are enough",
        nearest=[run.run_id for run in found[:_LISTED]],
        candidates=[{"run_id": run.run_id, "state": run.state.value, "product": run.product} for run in found],
    )


def _count_distinguishing(found: Sequence[RunRecord]) -> int:
    """Length of the shortest end by which these runs differ; at least 4."""
    longest = max(len(run.run_id) for run in found)
    return next((n for n in range(4, longest) if len({run.run_id[-n:] for run in found}) == len(found)), longest)


def _unknown_error(conn: Connection, text: str) -> NotFound:
    ids = conn.execute(select(run_table.c.run_id).order_by(*_NEWEST_FIRST)).scalars().all()
    near = _find_nearest(text, ids)
    return NotFound(
        f"{text!r} is not a run of this ledger; expected a run id or a part of one, nearest: "
        f"{', '.join(near) or 'there are no runs yet'}",
        state="nothing was changed",
        hint="errata status lists the runs",
        nearest=near,
    )


def _find_nearest(text: str, ids: Sequence[str]) -> list[str]:
    """Ids that resemble the text, or whose end does; the newest ones if none does."""
    ends = {run_id.rpartition("-")[2]: run_id for run_id in reversed(ids)}
    close = [ends[end] for end in difflib.get_close_matches(text, ends, n=3, cutoff=0.5)]
    close += difflib.get_close_matches(text, ids, n=3, cutoff=0.5)
    return list(dict.fromkeys(close))[:3] or list(ids[:3])
