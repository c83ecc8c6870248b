"""What the ledger knows about the readiness of a table's partitions, read in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from errata.ledger.audit.chain import load_entries
from errata.ledger.readiness.hold_rows import is_standing, load_holds
from errata.ledger.readiness.table_sets import find_set, iterate_set_claims, list_joined
from errata.ledger.records import PartitionState
from errata.ledger.schema.definition import hold as hold_table
from errata.ledger.schema.definition import outbox_item, publication
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import Store, find_run, parse_texts, run_from_row
from errata.ledger.store.partition_history import find_current, find_partition_states
from errata.ledger.store.publication_rows import load_publications, select_open_publications
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.readiness import (
    SETTLING_EFFECTS,
    Claim,
    Landing,
    PartitionReadiness,
    ReadyState,
    is_unsettled,
    judge_readiness,
)
from errata.model.consumer.table_set import TableSet
from errata.model.kind import CHECKING_KINDS
from errata.model.run import ACTIVE, PublicationState, RunState

_ANNOUNCED = tuple(sorted(state.value for state in ACTIVE if state is not RunState.PLANNED))
_SETTLING = tuple(sorted(effect.value for effect in SETTLING_EFFECTS))
_APPROVED_BY = ("run.approved", "standing.used")
"""Audit actions with which a run was approved."""


class PartitionClaims(Store):
    """Reads only."""

    def judge(self, table: str) -> dict[str, PartitionReadiness]:
        """The state of every partition that has a claim or was published; all others are ready."""

        def work(conn: Connection) -> dict[str, PartitionReadiness]:
            at, now_ms = self._database.clock(conn)
            landings, unsettled = _load_landings(conn, table)
            claims = (*_iterate_announced(conn, table), *unsettled, *_iterate_waits(conn, table, now_ms))
            return judge_readiness(claims, landings, datetime.fromisoformat(at))

        return self._read(work)

    def list_passing(self, tables: Iterable[str]) -> frozenset[ReadyState]:
        """States in which partitions of these tables are, and which pass without a decision of anybody."""

        def work(conn: Connection) -> frozenset[ReadyState]:
            now_ms, found = self._database.clock(conn)[1], set()
            for table in tables:
                claims = (*_load_landings(conn, table)[1], *_iterate_waits(conn, table, now_ms))
                found |= {claim.state for claim in claims if claim.passes}
            return frozenset(found)

        return self._read(work)

    def find_set(self, run_id: str, kind: str) -> TableSet | None:
        """The tables whose readers are held before this one; None unless it is the first of a campaign."""
        return self._read(lambda conn: find_set(conn, find_run(conn, run_id), kind))

    def list_joined(self, tables: Iterable[str]) -> tuple[str, ...]:
        """These tables with all that campaigns connect them with: what the ready table says of them changes at once."""
        return self._read(lambda conn: list_joined(conn, tuple(tables)))


def _iterate_announced(conn: Connection, table: str) -> Iterator[Claim]:
    """Approved runs, with the partitions that they have not published yet."""
    c = run_table.c
    query = select(run_table).where(c.table_name == table, c.state.in_(_ANNOUNCED)).order_by(c.planned_at)
    for row in conn.execute(query).all():
        run = run_from_row(row)
        if run.kind in CHECKING_KINDS:
            continue
        states = find_partition_states(conn, run)
        names = tuple(name for name in run.partitions if states[name] is PartitionState.UNPUBLISHED)
        if names:
            entries = load_entries(conn, run.run_id, None, _APPROVED_BY)
            since = min((entry.at for entry in entries), default=run.updated_at)
            yield Claim(ReadyState.ANNOUNCED, run.run_id, names, since)


def _iterate_waits(conn: Connection, table: str, now_ms: int) -> Iterator[Claim]:
    """Reasons why readers have to wait, other than what is owed after a publication."""
    yield from _iterate_held(conn, table, now_ms)
    yield from _iterate_open(conn, table)
    yield from iterate_set_claims(conn, table)


def _iterate_held(conn: Connection, table: str, now_ms: int) -> Iterator[Claim]:
    for one in load_holds(conn, hold_table.c.table_name == table, is_standing()):
        if one.is_active(now_ms):
            yield Claim(ReadyState.HELD, one.run_id, one.partitions, one.opened_at, one.snapshot_id)


def _iterate_open(conn: Connection, table: str) -> Iterator[Claim]:
    for one in load_publications(conn, select_open_publications(table, None)):
        yield Claim(ReadyState.PUBLISHING, one.run_id, one.partitions, one.intended_at, one.base_snapshot_id)


@dataclass(frozen=True, slots=True)
class _Effects:
    """What a publication owed that its readers wait for."""

    unsettled: frozenset[str] = frozenset()  # partitions
    waived: frozenset[str] = frozenset()  # partitions that stay unsettled
    since: str = ""
    recovered_at: str | None = None


def _load_landings(conn: Connection, table: str) -> tuple[tuple[Landing, ...], tuple[Claim, ...]]:
    """Publications and rollbacks that landed, in the order in which they were settled, and what they still owe."""
    own: dict[str, list[str]] = {}
    for name, top in find_current(conn, table, None).items():
        own.setdefault(top.pub_id, []).append(name)
    effects = _load_effects(conn, table)
    c = publication.c
    # plain columns, not records: a table may have thousands of publications
    query = select(c.pub_id, c.run_id, c.result_snapshot_id, c.intended_at, c.settled_at).where(
        c.table_name == table, c.state == PublicationState.COMMITTED.value
    )
    landings, claims = [], []
    for pub_id, run_id, snapshot_id, intended_at, settled_at in conn.execute(query.order_by(c.audit_seq)).tuples():
        names, effect = tuple(own.get(pub_id, ())), effects.get(pub_id, _Effects())
        landings.append(Landing(run_id, snapshot_id, intended_at, settled_at, names, effect.recovered_at))
        # a later publication or rollback of the partition owes for itself
        for unsettled, passes in ((effect.waived, False), (effect.unsettled, True)):
            if open_names := tuple(name for name in names if name in unsettled):
                claims.append(Claim(ReadyState.SETTLING, run_id, open_names, effect.since, snapshot_id, passes=passes))
    return tuple(landings), tuple(claims)


def _load_effects(conn: Connection, table: str) -> dict[str, _Effects]:
    """Per publication, what its items on the way to readers say."""
    c = outbox_item.c
    query = select(c.pub_id, c.effect, c.state, c.partitions, c.waived_ready, c.owed_at, c.ended_at).where(
        c.table_name == table, c.effect.in_(_SETTLING), c.pub_id.is_not(None)
    )
    found: dict[str, _Effects] = {}
    for row in conn.execute(query.order_by(c.item_id)):
        before = found.get(row.pub_id, _Effects())
        ended = max(filter(None, (before.recovered_at, row.ended_at)), default=None)
        unsettled, waived, state = before.unsettled, before.waived, ItemState(row.state)
        if is_unsettled(Effect(row.effect), state, waived_ready=bool(row.waived_ready)):
            names = frozenset(parse_texts(row.partitions))
            unsettled, waived = (
                (unsettled, waived | names) if state is ItemState.WAIVED else (unsettled | names, waived)
            )
        found[row.pub_id] = _Effects(unsettled, waived, before.since or row.owed_at or "", ended)
    return found
