"""Figures of the ledger for metrics, in one read transaction.

Counts and sums are the database's work. Only active runs and the last ones that ended have figures of their own, so a
ledger that grows does not make them slower. No manifest is read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from errata.ledger.audit.chain import read_head
from errata.ledger.figures.figure_values import Lease, LedgerFigures, OwedFigures, RunFigures
from errata.ledger.figures.run_results import add_deliveries, add_publications, add_verdicts
from errata.ledger.figures.run_work import add_attempts, add_audited, add_chunks, add_costs
from errata.ledger.schema.definition import attempt, frozen_scope, live_write, outbox_item, publication, run
from errata.ledger.store.base import Store
from errata.model.consumer.outbox import ItemState
from errata.model.run import ACTIVE, FINAL, AttemptState, PublicationState, RunState

MAX_ACTIVE = 100
"""Active runs that have figures of their own, those that changed last."""
_OPEN_ITEMS = tuple(state.value for state in (ItemState.CONDITIONAL, ItemState.OWED, ItemState.FAILED))


class Figures(Store):
    """Reads only."""

    def collect(self, last: int) -> LedgerFigures:
        """Figures of everything, of active runs, and of the ``last`` runs that ended."""
        return self._read(lambda conn: self._collect(conn, last))

    def _collect(self, conn: Connection, last: int) -> LedgerFigures:
        now_ms = self._database.clock(conn)[1]
        counts = _count_runs(conn)
        active = sum(n for (_, state), n in counts.items() if RunState(state) in ACTIVE)
        chosen = [*_choose_runs(conn, ACTIVE, MAX_ACTIVE), *_choose_runs(conn, FINAL, last)]
        runs = {row.run_id: _begin_figures(row) for row in _load_runs(conn, chosen)}
        if runs:
            add_chunks(conn, runs, now_ms)
            add_attempts(conn, runs)
            add_costs(conn, runs)
            add_audited(conn, runs)
            add_verdicts(conn, runs)
            add_publications(conn, runs)
            add_deliveries(conn, runs)
        seq, _, at = read_head(conn)
        return LedgerFigures(
            now_ms, counts, tuple(runs.values()), max(0, active - MAX_ACTIVE), _load_owed(conn),
            _load_leases(conn, [run_id for run_id, one in runs.items() if RunState(one.state) in ACTIVE], now_ms),
            seq, at,
        )  # fmt: skip


def _count_runs(conn: Connection) -> dict[tuple[str, str], int]:
    query = select(run.c.product, run.c.state, func.count().label("n")).group_by(run.c.state, run.c.product)
    return {(row.product, row.state): int(row.n) for row in conn.execute(query)}


def _choose_runs(conn: Connection, states: Collection[RunState], most: int) -> list[str]:
    where = run.c.state.in_(sorted(state.value for state in states))
    query = select(run.c.run_id).where(where).order_by(run.c.updated_at.desc(), run.c.run_id).limit(most)
    return list(conn.execute(query).scalars())


def _load_runs(conn: Connection, run_ids: Sequence[str]) -> Sequence[Row[Any]]:
    wanted = (run.c.run_id, run.c.product, run.c.table_name, run.c.state, run.c.planned_at, run.c.updated_at)
    return conn.execute(select(*wanted).where(run.c.run_id.in_(run_ids)).order_by(run.c.run_id)).all()


def _begin_figures(row: Row[Any]) -> RunFigures:
    return RunFigures(row.run_id, row.product, row.table_name, row.state, row.planned_at, row.updated_at)


def _load_owed(conn: Connection) -> tuple[OwedFigures, ...]:
    keys = (outbox_item.c.table_name, outbox_item.c.effect, outbox_item.c.consumer, outbox_item.c.state)
    oldest = func.min(func.coalesce(outbox_item.c.owed_at, outbox_item.c.at)).label("oldest")
    query = select(*keys, func.count().label("n"), oldest).where(outbox_item.c.state.in_(_OPEN_ITEMS)).group_by(*keys)
    return tuple(
        OwedFigures(row.table_name, row.effect, row.consumer, row.state, int(row.n), row.oldest)
        for row in conn.execute(query.order_by(*keys))
    )


def _load_leases(conn: Connection, active: Sequence[str], now_ms: int) -> tuple[Lease, ...]:
    held = [
        ("chunk", select(run.c.table_name, attempt.c.lease_until).join(run, run.c.run_id == attempt.c.run_id).where(
            attempt.c.run_id.in_(active), attempt.c.state == AttemptState.RUNNING.value)),
        ("publication", select(publication.c.table_name, publication.c.lease_until).where(
            publication.c.run_id.in_(active), publication.c.state == PublicationState.INTENDED.value)),
        ("freeze", select(frozen_scope.c.table_name, frozen_scope.c.lease_until).where(
            frozen_scope.c.run_id.in_(active), frozen_scope.c.ended_at.is_(None))),
        ("live_job", select(live_write.c.table_name, live_write.c.lease_until)),
        ("delivery", select(outbox_item.c.table_name, outbox_item.c.lease_until).where(
            outbox_item.c.state == ItemState.OWED.value, outbox_item.c.owner.is_not(None))),
    ]  # fmt: skip
    return tuple(
        Lease(kind, row.table_name, row.lease_until <= now_ms) for kind, query in held for row in conn.execute(query)
    )
