"""Base of all stores: transactions, audited refusals, and state changes of a run.

A rule that refuses raises :class:`Refusal` inside the transaction. The transaction is rolled back, the refusal is
audited in a transaction of its own, and the caller gets the error it carries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any, NoReturn, TypeVar, cast

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from errata.canonical import canonical_bytes
from errata.errors import ErrataError, NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Database, Tx
from errata.ledger.readiness.hold_rows import end_holds
from errata.ledger.records import RunRecord
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.freeze_end import lift_freeze
from errata.model.audit import Actor
from errata.model.run import FREEZE_END_STATES, RUN_MOVES, RunState

T = TypeVar("T")

_RENAMED = {"table": "table_name", "check": "check_name"}
"""Fields of records whose columns have another name, because these are SQL keywords."""
_COMMAND_NAMES = {
    "run.approved": "approve",
    "run.declined": "decline",
    "run.running": "run",
    "run.paused": "pause",
    "run.cancelled": "cancel",
    "run.expired": "expiry",
    "run.rebased": "rebase",
    "freeze.opened": "freeze",
    "hold.opened": "publish",
    "candidate.intended": "validate",
    "publish.intended": "publish",
    "rollback.intended": "rollback",
}
"""Command names for messages, by audit action."""


class Refusal(Exception):
    """A rule refused ``action``; carries the error for the caller and the body of the audit entry."""

    def __init__(
        self, error: ErrataError, *, run_id: str | None, action: str, body: Mapping[str, Any] | None = None,
        code: str = "refused",
    ) -> None:  # fmt: skip
        super().__init__(error.message)
        self.error = error
        self.run_id = run_id
        self.action = action
        self.body = dict(body or {})
        self.code = code


class Store:
    """Base class of all stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self._database.read(work)

    def _write(self, actor: Actor, work: Callable[[Tx], T]) -> T:
        try:
            return self._database.write(work)
        except Refusal as refusal:
            self._audit_refusal(actor, refusal)
            raise refusal.error from None
        except IntegrityError as error:
            ruled_out = _build_rule_refusal(self._database.dialect.said(error))
            self._audit_refusal(actor, ruled_out)
            raise ruled_out.error from error

    def _audit_refusal(self, actor: Actor, refusal: Refusal) -> None:
        body = {"attempted": refusal.action, "reason": refusal.error.message, **refusal.body}
        self._database.write(lambda tx: append_entry(tx, actor, refusal.code, refusal.run_id, body))


def _build_rule_refusal(rule: str) -> Refusal:
    why = StateRefused(f"the ledger's own rules refused this write: {rule}", state="nothing was changed")
    return Refusal(why, run_id=None, action="write", body={"rule": rule})


def find_run(conn: Connection, run_id: str) -> RunRecord:
    """The run with exactly this id; raises when there is none."""
    row = conn.execute(select(run_table).where(run_table.c.run_id == run_id)).first()
    if row is None:
        raise NotFound(
            f"there is no run {run_id} in this ledger",
            state="nothing was changed",
            hint="errata status lists the runs",
            run_id=run_id,
        )
    return run_from_row(row)


def require_state(run: RunRecord, expected: Collection[RunState], action: str) -> None:
    """Refuse ``action`` unless the run is in one of these states."""
    if run.state not in expected:
        _refuse_state(run, action, sorted(expected))


def move_run(
    tx: Tx, run: RunRecord, to: RunState, actor: Actor, action: str, body: Mapping[str, Any] | None = None
) -> RunRecord:
    """Change the run's state and append the audit entry that names the change."""
    if to not in RUN_MOVES[run.state]:
        came_from = sorted(state for state, moves in RUN_MOVES.items() if to in moves)
        _refuse_state(run, action, came_from, to)
    # the entry comes first: the trigger on ``run`` refuses an update without it
    entry = append_entry(tx, actor, action, run.run_id, body, move=(run.state.value, to.value))
    tx.conn.execute(
        run_table.update()
        .where(run_table.c.run_id == run.run_id)
        .values(state=to.value, updated_at=tx.at, audit_seq=entry.seq)
    )
    if to in FREEZE_END_STATES:
        lift_freeze(tx, run.run_id, actor, to.value)
        end_holds(tx, run.run_id, actor, to.value)
    return find_run(tx.conn, run.run_id)


def _refuse_state(run: RunRecord, action: str, expected: Iterable[RunState], to: RunState | None = None) -> NoReturn:
    wanted = [state.value for state in expected]
    error = StateRefused(
        f"{_COMMAND_NAMES.get(action, action)} of {run.run_id} was refused; expected state "
        f"{' or '.join(wanted) or 'none'},"
        f" found {run.state.value}",
        state="nothing was changed",
        run_id=run.run_id,
        found=run.state.value,
        expected=wanted,
    )
    body = {"found": run.state.value, "expected": wanted} | ({"to": to.value} if to else {})
    raise Refusal(error, run_id=run.run_id, action=action, body=body)


def run_from_row(row: Row[Any]) -> RunRecord:
    """A row of ``run`` as a record."""
    return build_record(RunRecord, row, wave=None, partitions=parse_texts(row.partitions), state=RunState(row.state))


def build_record(kind: type[T], row: Row[Any], **converted: Any) -> T:
    """A row as a record: each field is the column of its name, except for those that are given."""
    names = [one.name for one in fields(cast("Any", kind)) if one.name not in converted]
    return kind(**converted, **{name: getattr(row, _RENAMED.get(name, name)) for name in names})


def to_json_text(value: Any) -> str:
    """Canonical JSON text, as the ledger stores it."""
    return canonical_bytes(value).decode()


def parse_texts(stored: str) -> tuple[str, ...]:
    """Parse a stored list of texts."""
    return tuple(json.loads(stored))
