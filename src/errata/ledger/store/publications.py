"""Publications and rollbacks: the intent before the commit, and the outcome read from the table afterwards.

An intent takes one lock per partition and stays open until it is settled. A lock is never taken over, because only the
table can tell whether its holder committed. Settling writes the publication, the history of its partitions, the states
of all runs concerned and the audit entries in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from errata.canonical import canonical_bytes, digest_of
from errata.errors import ScopeLocked, StateRefused, UsageError
from errata.ledger.audit.chain import append_entry, load_entries
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import settle_owed, write_owed
from errata.ledger.readiness.holds import end_settled_holds, require_held
from errata.ledger.records import Owner, PartitionState, PublicationRecord, RunRecord, WaveRecord
from errata.ledger.schema.definition import hazard, publication, publication_detail, scope_lock
from errata.ledger.store.base import Refusal, Store, find_run, move_run, require_state, to_json_text
from errata.ledger.store.campaign_members import require_member, withdraw_from_descendants
from errata.ledger.store.freeze_end import lift_published_freezes
from errata.ledger.store.partition_history import (
    find_partition_states,
    find_runs_below,
    record_acceptances,
)
from errata.ledger.store.parts import load_part, save_parts
from errata.ledger.store.publication_rows import find_publication, load_publications, select_open_publications
from errata.ledger.store.releases import require_release
from errata.ledger.store.wave_states import find_waves, follow_waves
from errata.model.audit import Actor
from errata.model.consumer.outbox import Owed
from errata.model.refs import undo_branch
from errata.model.run import RUN_MOVES, PublicationState, RunState
from errata.model.waves import (
    OUT,
    RESUME_ACTIONS,
    WAVE_ACTIONS,
    WaveState,
    build_pause_error,
    build_stopped_error,
    derive_run_state,
)

PublicationKind = Literal["publish", "rollback"]
PublicationOutcome = Literal["committed", "abandoned"]

_BEFORE_THE_END = (
    RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.STAGED, RunState.REJECTED, RunState.NEEDS_ACCEPTANCE,
    RunState.VALIDATED, RunState.PART_PUBLISHED,
)  # fmt: skip
_ALLOWED_STATES: dict[str, tuple[RunState, ...]] = {
    "publish": tuple(state for state in _BEFORE_THE_END if state is not RunState.PAUSED),
    "rollback": (*_BEFORE_THE_END, RunState.PUBLISHED, RunState.CANCELLED, RunState.EXPIRED),
}
"""By kind; which partitions may go is decided by the states of their waves."""
_GOING = (WaveState.VALIDATED, WaveState.PART_PUBLISHED)
_REQUIRED_STATE = {"publish": PartitionState.UNPUBLISHED, "rollback": PartitionState.ACCEPTED}
_PUBLISHED_STATES = frozenset({RunState.PUBLISHED, RunState.PART_PUBLISHED, RunState.SUPERSEDED})


class Publications(Store):
    """Intents and outcomes."""

    def intend(
        self,
        run_id: str,
        kind: PublicationKind,
        partitions: Sequence[str],
        *,
        table: str,
        person: str,
        reason: str,
        detail: Mapping[str, Any],
        lease_seconds: float,
        actor: Actor,
        consumers: Collection[str],
        release: Mapping[str, Any] | None = None,
        base_snapshot_id: str | None = None,
        owner: Owner | None = None,
        found_id: str | None = None,
        owes: Sequence[Owed] = (),
    ) -> PublicationRecord:
        """Lock the partitions and record what is about to be committed; a publish moves the run to publishing.

        ``consumers`` are those that must be held; without their holds the intent is refused.
        ``found_id`` is the id of a publication that is on the table but missing in this ledger (default: a new id).
        ``owes`` is what follows if it lands.
        """
        content = canonical_bytes(detail)

        def work(tx: Tx) -> PublicationRecord:
            run = find_run(tx.conn, run_id)
            require_state(run, _ALLOWED_STATES[kind], f"{kind}.intended")
            waves = find_waves(tx.conn, run)
            _require_waves(run, kind, waves, partitions)
            _require_order(run, waves, release)
            _require_scope(tx.conn, run, kind, table, partitions)
            # checked here, in the transaction of the intent, so that no verdict, pause or lock can come in between
            require_release(tx.conn, run, release)
            require_not_stopped(tx, run, release)
            require_pause_elapsed(tx, run, release)
            told = {**(release or {}), **require_held(tx, run, kind, consumers, partitions)}
            if kind == "publish" and found_id is None:
                require_member(tx.conn, run)
            last = tx.conn.execute(select(func.max(publication.c.n)).where(publication.c.run_id == run_id)).scalar()
            n = (last or 0) + 1
            pub_id = found_id or _build_pub_id(tx, run_id, kind, n)
            _require_unlocked(tx, run, kind, table, partitions)
            if kind == "rollback":
                withdraw_from_descendants(tx, run, pub_id, actor)
            (part,) = save_parts(tx, [content])
            facts = {
                "publication": pub_id, "table": table, "partitions": list(partitions), "person": person,
                "reason": reason, "base_snapshot_id": base_snapshot_id, "detail": part, "release": told or release,
            }  # fmt: skip
            # while later waves are computed the run stays running
            going = follow_waves(run.state, [_set_publishing(wave, partitions) for wave in waves])
            moves = kind == "publish" and going is not run.state
            seq = _append_or_move(tx, run, going if moves else None, actor, f"{kind}.intended", facts)
            lease_until = tx.now_ms + int(lease_seconds * 1000)
            row = {
                "pub_id": pub_id, "run_id": run_id, "n": n, "kind": kind, "state": "intended", "table_name": table,
                "partitions": to_json_text(list(partitions)), "person": person, "reason": reason,
                "base_snapshot_id": base_snapshot_id, "undo_branch": undo_branch(pub_id),
                "release": to_json_text(told), "owner": to_json_text(owner) if owner else None,
                "previous_run_state": run.state.value, "intended_at": tx.at, "lease_until": lease_until,
                "audit_seq": seq,
            }  # fmt: skip
            tx.conn.execute(publication.insert(), row)
            tx.conn.execute(publication_detail.insert(), _detail_row(pub_id, 1, part, tx.at, seq))
            locks = [
                {"table_name": table, "partition": p, "pub_id": pub_id, "lease_until": lease_until} for p in partitions
            ]
            tx.conn.execute(scope_lock.insert(), locks)
            write_owed(tx, run, pub_id, owes, actor, pub_id=pub_id, conditional=True)
            return find_publication(tx.conn, pub_id)

        return self._write(actor, work)

    def update_intent(
        self, pub_id: str, detail: Mapping[str, Any], *, actor: Actor, base_snapshot_id: str | None = None
    ) -> PublicationRecord:
        """Record what the next commit attempt will commit; earlier details are kept."""
        content = canonical_bytes(detail)

        def work(tx: Tx) -> PublicationRecord:
            known = find_publication(tx.conn, pub_id)
            if known.state is not PublicationState.INTENDED:
                raise _already_settled_error(known, f"{known.kind}.updated")
            (part,) = save_parts(tx, [content])
            base = base_snapshot_id if base_snapshot_id is not None else known.base_snapshot_id
            body = {"publication": pub_id, "detail": part, "base_snapshot_id": base}
            seq = append_entry(tx, actor, f"{known.kind}.updated", known.run_id, body).seq
            row = _detail_row(pub_id, len(known.details) + 1, part, tx.at, seq)
            tx.conn.execute(publication_detail.insert(), row)
            where = publication.c.pub_id == pub_id
            tx.conn.execute(publication.update().where(where).values(base_snapshot_id=base, audit_seq=seq))
            return find_publication(tx.conn, pub_id)

        return self._write(actor, work)

    def renew(self, pub_id: str, lease_seconds: float) -> bool:
        """Renew the lease of an open intent; False when it was settled."""

        def work(tx: Tx) -> bool:
            if find_publication(tx.conn, pub_id).state is not PublicationState.INTENDED:
                return False
            until = tx.now_ms + int(lease_seconds * 1000)
            tx.conn.execute(publication.update().where(publication.c.pub_id == pub_id).values(lease_until=until))
            tx.conn.execute(scope_lock.update().where(scope_lock.c.pub_id == pub_id).values(lease_until=until))
            return True

        return self._database.write(work)

    def settle(
        self,
        pub_id: str,
        outcome: PublicationOutcome,
        *,
        actor: Actor,
        snapshot_id: str | None = None,
        data_files_written: int | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> PublicationRecord:
        """Record the outcome of an intent and everything that follows from it. Idempotent."""
        if outcome == "committed" and snapshot_id is None:
            raise UsageError(f"{pub_id} was not settled; a committed publication needs its snapshot id")
        state = PublicationState(outcome)

        def work(tx: Tx) -> PublicationRecord:
            known = find_publication(tx.conn, pub_id)
            if known.state is state and known.result_snapshot_id == snapshot_id:
                return known
            if known.state is not PublicationState.INTENDED:
                raise _already_settled_error(known, f"{known.kind}.{outcome}")
            values = {
                "state": state.value, "result_snapshot_id": snapshot_id, "settled_at": tx.at,
                "data_files_written": data_files_written, "audit_seq": tx.head_seq + 1,
            }  # fmt: skip
            # the publication first: triggers keep the locks of an open intent, and accept history rows only of a
            # committed publication
            tx.conn.execute(publication.update().where(publication.c.pub_id == pub_id).values(values))
            tx.conn.execute(scope_lock.delete().where(scope_lock.c.pub_id == pub_id))
            facts = {
                "publication": pub_id, "snapshot_id": snapshot_id, "data_files_written": data_files_written,
                "partitions": list(known.partitions),
            }  # fmt: skip
            _record_consequences(tx, known, outcome, actor, {**(body or {}), **facts}, snapshot_id)
            end_settled_holds(tx, known, outcome, actor, lambda: _is_all_out(tx.conn, known.run_id))
            if outcome == "committed" and known.kind == "publish":
                lift_published_freezes(tx, known.table, known.run_id, actor, known.partitions)
            settle_owed(tx, known, actor, landed=outcome == "committed")
            return find_publication(tx.conn, pub_id)

        return self._write(actor, work)

    def exists(self, pub_id: str) -> bool:
        """Whether this ledger has a publication or rollback with this id, whatever its outcome."""
        query = select(publication.c.pub_id).where(publication.c.pub_id == pub_id)
        return self._read(lambda conn: conn.execute(query).first() is not None)

    def get(self, pub_id: str) -> PublicationRecord:
        """The publication or rollback with this id."""
        return self._read(lambda conn: find_publication(conn, pub_id))

    def detail(self, pub_id: str) -> dict[str, Any]:
        """The latest detail of the intent."""
        content = self._read(lambda conn: load_part(conn, find_publication(conn, pub_id).detail))
        found: dict[str, Any] = json.loads(content)
        return found

    def list(self, run_id: str) -> tuple[PublicationRecord, ...]:
        """Publications and rollbacks of the run, oldest first."""
        query = select(publication).where(publication.c.run_id == run_id).order_by(publication.c.n)
        return self._read(lambda conn: load_publications(conn, query))

    def latest_landed(self, run_id: str, kind: str) -> PublicationRecord:
        """The run's newest publication or rollback that landed; there must be one."""
        return [one for one in self.list(run_id) if one.kind == kind and one.result_snapshot_id][-1]

    def list_committed(self, table: str) -> tuple[str, ...]:
        """Ids of all committed publications and rollbacks on this table, by any run; oldest first."""
        landed = publication.c.state == PublicationState.COMMITTED.value
        query = select(publication.c.pub_id).where(publication.c.table_name == table, landed)
        return self._read(lambda conn: tuple(conn.execute(query.order_by(publication.c.audit_seq)).scalars()))

    def list_open(self, table: str | None = None, run_id: str | None = None) -> tuple[PublicationRecord, ...]:
        """Intents that are not settled yet."""
        return self._read(lambda conn: load_publications(conn, select_open_publications(table, run_id)))


def _build_pub_id(tx: Tx, run_id: str, kind: PublicationKind, n: int) -> str:
    """``<run>-p1-3fa9c2``: unique over time, because the table keeps ids that a ledger restored from a backup lacks.

    Two ledgers with a common past may have the same head, but not at the same time.
    """
    return f"{run_id}-{kind[0]}{n}-{digest_of([tx.head_hash, tx.at])[:6]}"


def _require_waves(
    run: RunRecord, kind: PublicationKind, waves: Sequence[WaveRecord], partitions: Sequence[str]
) -> None:
    """Refuse to publish a wave that has not passed its gate."""
    wanted = set(partitions) if kind == "publish" else set()
    wrong = [wave for wave in waves if not wanted.isdisjoint(wave.partitions) and wave.state not in _GOING]
    if not wrong:
        return
    found = wrong[0].state.value
    which = run.run_id if len(waves) == 1 else f"wave {wrong[0].n} of {run.run_id}"
    error = StateRefused(
        f"{kind} of {which} was refused; expected state validated or part_published, found {found}",
        state="nothing was changed",
        run_id=run.run_id,
        found=found,
        expected=[state.value for state in _GOING],
    )
    body = {"found": found, "wave": wrong[0].n}
    raise Refusal(error, run_id=run.run_id, action=f"{kind}.intended", body=body)


def _require_order(run: RunRecord, waves: Sequence[WaveRecord], release: Mapping[str, Any] | None) -> None:
    """Refuse a wave before the one before it, unless someone named its partitions."""
    told = (release or {}).get("wave") or {}
    if told.get("named"):
        return
    for n in told.get("n", ()):
        if before := [wave.n for wave in waves if wave.n < n and wave.state not in OUT]:
            error = StateRefused(
                f"publish of wave {n} of {run.run_id} was refused; wave {before[0]} is not out yet",
                state="nothing was changed",
                run_id=run.run_id,
            )
            raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"wave": n, "before": before})


def _set_publishing(wave: WaveRecord, partitions: Sequence[str]) -> WaveState:
    return wave.state if set(wave.partitions).isdisjoint(partitions) else WaveState.PUBLISHING


def _require_scope(
    conn: Connection, run: RunRecord, kind: PublicationKind, table: str, partitions: Sequence[str]
) -> None:
    states = find_partition_states(conn, run)
    wrong = [p for p in partitions if states.get(p) is not _REQUIRED_STATE[kind]]
    if partitions and len(set(partitions)) == len(partitions) and table == run.table and not wrong:
        return
    found = ", ".join(f"{p} {states[p].value if p in states else 'not in the run'}" for p in wrong[:5])
    error = StateRefused(
        f"{kind} of {run.run_id} was refused; expected {_REQUIRED_STATE[kind].value} partitions of "
        f"{run.table}, each once,"
        f" found {found or f'{len(partitions)} partitions of {table}'}",
        state="nothing was changed",
        run_id=run.run_id,
        partitions=wrong,
    )
    raise Refusal(error, run_id=run.run_id, action=f"{kind}.intended", body={"partitions": wrong[:50], "table": table})


def _require_unlocked(tx: Tx, run: RunRecord, kind: PublicationKind, table: str, partitions: Sequence[str]) -> None:
    wanted = set(partitions)
    locks = tx.conn.execute(select(scope_lock).where(scope_lock.c.table_name == table).order_by("partition")).all()
    taken = [lock for lock in locks if lock.partition in wanted]
    holders = sorted({lock.pub_id for lock in taken})
    own = load_publications(tx.conn, select_open_publications(None, run.run_id))
    if not taken and not own:
        return
    holder = holders[0] if holders else own[0].pub_id
    expired = find_publication(tx.conn, holder).lease_until <= tx.now_ms
    error = ScopeLocked(
        f"{kind} of {run.run_id} was refused; expected free partitions, found {len(taken)} held by {holder}"
        + (", whose lease has expired" if expired else ""),
        state="the live table was not touched",
        hint=f"errata status {find_publication(tx.conn, holder).run_id}; try again when it is settled",
        holder=holder,
        holders=holders or [holder],
        partitions=[lock.partition for lock in taken],
        lease_expired=expired,
    )
    raise Refusal(error, run_id=run.run_id, action=f"{kind}.intended", body={"holders": holders or [holder]})


def _is_all_out(conn: Connection, run_id: str) -> bool:
    return all(wave.state in OUT for wave in find_waves(conn, find_run(conn, run_id)))


def _record_consequences(
    tx: Tx,
    known: PublicationRecord,
    outcome: PublicationOutcome,
    actor: Actor,
    facts: Mapping[str, Any],
    snapshot_id: str | None,
) -> None:
    """Record what follows from an outcome: partition history, the run's state, hazard, the states of runs below."""
    if outcome == "committed":
        record_acceptances(tx, known, tx.head_seq + 1)
    run = find_run(tx.conn, known.run_id)
    after = _find_state_after(run, [wave.state for wave in find_waves(tx.conn, run)])
    if outcome == "committed" and known.kind == "rollback" and after is RunState.RUNNING:
        # someone has to look before more is computed and published
        after = RunState.PAUSED
    first = after
    if run.state is RunState.PUBLISHING and after in (RunState.SUPERSEDED, RunState.ROLLED_BACK):
        # Later runs superseded this one meanwhile; the model allows that move only from published states.
        first = RunState.PART_PUBLISHED
    moves = first is not run.state
    seq = _append_or_move(tx, run, first if moves else None, actor, f"{known.kind}.{outcome}", facts)
    if first is not after:
        move_run(tx, find_run(tx.conn, run.run_id), after, actor, f"run.{after.value}", {"because": known.pub_id})
    if outcome == "committed" and known.kind == "rollback":
        row = {"pub_id": known.pub_id, "table_name": known.table, "snapshot_id": snapshot_id}
        tx.conn.execute(hazard.insert(), row | {"opened_at": tx.at, "audit_seq": seq})
    # a superseded run stays superseded under one more publication; only a rollback restores it
    changeable = _PUBLISHED_STATES if known.kind == "rollback" else _PUBLISHED_STATES - {RunState.SUPERSEDED}
    for other in find_runs_below(tx.conn, known) if outcome == "committed" else ():
        below = find_run(tx.conn, other)
        if below.state in changeable:
            _refresh_run_state(tx, below, known.pub_id, actor)


def _find_state_after(run: RunRecord, waves: Sequence[WaveState]) -> RunState:
    """The state that follows from the waves; of a run that was given up, only from those that were out by then."""
    if run.state not in (RunState.CANCELLED, RunState.EXPIRED):
        return follow_waves(run.state, waves)
    out = [state for state in waves if state in OUT]
    after = derive_run_state(out) if out and WaveState.PART_PUBLISHED not in waves else run.state
    return after if after in RUN_MOVES[run.state] else run.state


def _refresh_run_state(tx: Tx, run: RunRecord, because: str, actor: Actor) -> None:
    # The caller leaves out a run that is publishing: its state is derived when its own intent is settled.
    after = follow_waves(run.state, [wave.state for wave in find_waves(tx.conn, run)])
    if after is not run.state:
        move_run(tx, run, after, actor, f"run.{after.value}", {"because": because})


def _append_or_move(
    tx: Tx, run: RunRecord, to: RunState | None, actor: Actor, action: str, body: Mapping[str, Any]
) -> int:
    if to is None:
        return append_entry(tx, actor, action, run.run_id, body).seq
    return move_run(tx, run, to, actor, action, body).audit_seq


def _already_settled_error(known: PublicationRecord, action: str) -> Refusal:
    error = StateRefused(
        f"{action} was refused for {known.pub_id}; expected an open intent, found {known.state.value}"
        + (f" as snapshot {known.result_snapshot_id}" if known.result_snapshot_id else ""),
        state="nothing was changed",
        hint=f"errata status {known.run_id}",
    )
    return Refusal(error, run_id=known.run_id, action=action, body={"publication": known.pub_id})


def _detail_row(pub_id: str, n: int, part: str, at: str, seq: int) -> dict[str, Any]:
    return {"pub_id": pub_id, "n": n, "part_digest": part, "at": at, "audit_seq": seq}


def require_not_stopped(tx: Tx, run: RunRecord, release: Mapping[str, Any] | None) -> None:
    """Refuse a wave after a pause or a rollback that no resume has followed."""
    newest = load_entries(tx.conn, run.run_id, 1, WAVE_ACTIONS) if (release or {}).get("wave") else ()
    if newest and newest[0].action not in RESUME_ACTIONS:
        why = f"{newest[0].action}, entry {newest[0].seq}"
        raise Refusal(
            build_stopped_error(run.run_id, why), run_id=run.run_id, action="publish.intended", body={"why": why}
        )


def require_pause_elapsed(tx: Tx, run: RunRecord, release: Mapping[str, Any] | None) -> None:
    """Refuse a wave before its pause has elapsed, unless a person let it go early; ``release`` contains the pause."""
    wave = (release or {}).get("wave") or {}
    if not wave or wave.get("early"):
        return
    mine = (
        (publication.c.run_id == run.run_id) & (publication.c.kind == "publish") & (publication.c.state == "committed")
    )
    last = tx.conn.execute(select(func.max(publication.c.settled_at)).where(mine)).scalar()
    if last is None:
        return
    now = datetime.fromtimestamp(tx.now_ms / 1000, UTC)
    until = datetime.fromisoformat(last) + timedelta(seconds=int(wave["pause_seconds"]))
    until -= timedelta(microseconds=until.microsecond % 1000)  # tx.now_ms has only milliseconds
    if now < until:
        error = build_pause_error(run.run_id, str(wave["pause"]), until, now)
        raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"until": error.fields["until"]})
