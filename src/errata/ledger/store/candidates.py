"""Candidates, their measurements and verdicts.

The intent of a candidate is recorded before its branch is created. Measurements are replaced as a whole until there is
a verdict and are fixed from then on. Verdicts are only added, so after a change of thresholds both are on record.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from errata.canonical import digest_of, to_plain
from errata.errors import NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.audit.measurement_digest import MEASURED, digest_measurements, load_measurements
from errata.ledger.db.database import Tx
from errata.ledger.privacy.pseudonyms import current_registry
from errata.ledger.records import CandidateRecord, CandidateState, RunRecord, VerdictRecord, WaveRecord, covers
from errata.ledger.schema.definition import candidate, measurement, verdict
from errata.ledger.schema.trigger_rules import CANDIDATE_MOVES
from errata.ledger.store.base import Refusal, Store, build_record, find_run, move_run, require_state, to_json_text
from errata.ledger.store.freeze_end import lift_freeze
from errata.ledger.store.wave_states import find_waves, follow_waves
from errata.model.audit import Actor
from errata.model.refs import candidate_branch
from errata.model.run import FREEZE_END_STATES, RunState, find_judged_state
from errata.model.waves import BLOCKED, WaveState
from errata.ports.measure import Measurement

_CAN_VALIDATE = (
    RunState.RUNNING,  # a wave is judged while later ones are computed
    RunState.PAUSED,
    RunState.FAILED,
    RunState.STAGED,
    RunState.REJECTED,
    RunState.NEEDS_ACCEPTANCE,
    RunState.VALIDATED,
    RunState.PUBLISHING,  # one wave is judged while another is published
    RunState.PART_PUBLISHED,
)
_BY_WAVE = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.PUBLISHING})
"""States of a run that say nothing about the wave that is judged."""
_CAN_JUDGE = frozenset({WaveState.STAGED, WaveState.PART_PUBLISHED, WaveState.VALIDATED}) | BLOCKED


class Candidates(Store):
    """Candidates, measurements and verdicts."""

    def intend(
        self,
        run_id: str,
        digest: str,
        actor: Actor,
        detail: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
    ) -> CandidateRecord:
        """Record the intent to assemble the next candidate from the adopted set ``digest``.

        ``branch`` is the ref of a snapshot that exists already and is judged as it is (default: a new branch).
        """

        def work(tx: Tx) -> CandidateRecord:
            run = find_run(tx.conn, run_id)
            require_state(run, _CAN_VALIDATE, "candidate.intended")
            if run.state is RunState.PUBLISHING:
                _require_judgeable(run, find_waves(tx.conn, run), n=0, detail=detail or {})
            last = tx.conn.execute(select(func.max(candidate.c.n)).where(candidate.c.run_id == run_id)).scalar()
            n = (last or 0) + 1
            body = {"n": n, "branch": branch or candidate_branch(run_id, n, digest), "digest": digest}
            told = body | {"detail": digest_of(detail or {})}
            seq = append_entry(tx, actor, "candidate.intended", run_id, told).seq
            row = body | {"run_id": run_id, "state": "intended", "detail": to_json_text(detail or {})}
            tx.conn.execute(candidate.insert(), row | {"at": tx.at, "audit_seq": seq})
            return _find_candidate(tx.conn, run_id, n)

        return self._write(actor, work)

    def record(
        self,
        run_id: str,
        n: int,
        base_snapshot_id: str | None,
        snapshot_id: str,
        actor: Actor,
        detail: Mapping[str, Any] | None = None,
    ) -> CandidateRecord:
        """Record the snapshot of an assembled candidate. Idempotent."""

        def work(tx: Tx) -> CandidateRecord:
            known = _find_candidate(tx.conn, run_id, n)
            if (known.state, known.snapshot_id) == (CandidateState.MADE, snapshot_id):
                return known
            values: dict[str, Any] = {"base_snapshot_id": base_snapshot_id, "snapshot_id": snapshot_id}
            if detail is not None:
                values["detail"] = to_json_text(detail)
            return _move_candidate(tx, known, CandidateState.MADE, actor, values)

        return self._write(actor, work)

    def abandon(self, run_id: str, n: int, actor: Actor, why: str = "") -> CandidateRecord:
        """Record that this candidate will not be used. Idempotent."""

        def work(tx: Tx) -> CandidateRecord:
            known = _find_candidate(tx.conn, run_id, n)
            if known.state is CandidateState.ABANDONED:
                return known
            return _move_candidate(tx, known, CandidateState.ABANDONED, actor, {}, why)

        return self._write(actor, work)

    def list(self, run_id: str) -> tuple[CandidateRecord, ...]:
        """All candidates of the run, oldest first."""
        query = select(candidate).where(candidate.c.run_id == run_id).order_by(candidate.c.n)
        return self._read(lambda conn: tuple(_candidate_from_row(row) for row in conn.execute(query)))

    def latest(self, run_id: str, partitions: Collection[str] | None = None) -> CandidateRecord | None:
        """The newest candidate with at least these partitions (default: with any), whatever its state."""
        found = [one for one in self.list(run_id) if partitions is None or covers(one.detail, partitions)]
        return found[-1] if found else None

    def record_measurements(
        self,
        run_id: str,
        n: int,
        measurements: Iterable[Measurement],
        actor: Actor,
        *,
        reused: Mapping[str, str] | None = None,
    ) -> int:
        """Replace the measurements of this candidate; returns their number.

        ``reused`` names the runs that numbers of the prior output were taken from, each with the partitions.
        Once there is a verdict, different measurements are refused and the same ones change nothing.
        """
        numbers = tuple(measurements)
        digest = digest_measurements(numbers)

        def work(tx: Tx) -> int:
            known = _find_candidate(tx.conn, run_id, n)
            if _has_verdict(tx.conn, run_id, n):
                if digest != digest_measurements(load_measurements(tx.conn, run_id, n)):
                    raise Refusal(_judged_error(known), run_id=run_id, action=MEASURED, body={"n": n, "digest": digest})
                return len(numbers)
            where = (measurement.c.run_id == run_id) & (measurement.c.candidate_n == n)
            tx.conn.execute(measurement.delete().where(where))
            if numbers:
                rows = [to_plain(number) | {"run_id": run_id, "candidate_n": n} for number in numbers]
                tx.conn.execute(measurement.insert(), rows)
            body = {"n": n, "measurement_count": len(numbers), "digest": digest}
            append_entry(tx, actor, MEASURED, run_id, body | ({"reused": dict(reused)} if reused else {}))
            return len(numbers)

        return self._write(actor, work)

    def measurements(self, run_id: str, n: int) -> tuple[Measurement, ...]:
        """Measurements of this candidate, in the order they were recorded."""
        return self._read(lambda conn: load_measurements(conn, run_id, n))

    def record_verdict(
        self,
        run_id: str,
        n: int,
        passed: bool,
        checks: Sequence[Mapping[str, Any]],
        thresholds_digest: str,
        actor: Actor,
        *,
        changes_table: bool = True,
    ) -> VerdictRecord:
        """Record the verdict on a wave's candidate and move the run to where its waves are, in one transaction.

        A run whose later waves are still computed, or that is published in part, keeps its state with any verdict.
        One that does not change its table is moved to attested or differs.
        """

        def work(tx: Tx) -> VerdictRecord:
            run, made = find_run(tx.conn, run_id), _find_candidate(tx.conn, run_id, n)
            require_state(run, _CAN_VALIDATE, "validate")
            waves = find_waves(tx.conn, run)
            judged = find_judged_state(checks, passed=passed, changes_table=changes_table)
            if made.state is not CandidateState.MADE:
                raise Refusal(_not_made_error(made), run_id=run_id, action="validate", body={"n": n})
            body = {
                "n": n, "passed": passed, "snapshot_id": made.snapshot_id, "thresholds_digest": thresholds_digest,
                "checks_digest": digest_of(current_registry().conceal_for_row(to_plain(list(checks)))),
            }  # fmt: skip
            _require_judgeable(run, waves, n=made.n, detail=made.detail)
            to = judged
            if changes_table:
                to = follow_waves(run.state, [_judge_wave(wave, made, judged) for wave in waves])
            seq = _append_verdict(tx, run, to, judged, actor, body)
            row = {
                "run_id": run_id, "candidate_n": n, "passed": passed, "checks": to_json_text(list(checks)),
                "thresholds_digest": thresholds_digest, "person": actor.person, "at": tx.at, "audit_seq": seq,
            }  # fmt: skip
            tx.conn.execute(verdict.insert(), row)
            if judged in FREEZE_END_STATES and to not in FREEZE_END_STATES:
                lift_freeze(
                    tx, run_id, actor, f"a wave is {judged.value}"
                )  # no later wave goes before a person decides
            found = _find_latest_verdict(tx.conn, run_id)
            if found is None:
                raise NotFound(f"the verdict on {run_id} was not kept")
            return found

        return self._write(actor, work)

    def verdicts(self, run_id: str) -> tuple[VerdictRecord, ...]:
        """All verdicts, oldest first."""
        query = select(verdict).where(verdict.c.run_id == run_id).order_by(verdict.c.id)
        return self._read(lambda conn: tuple(_verdict_from_row(row) for row in conn.execute(query)))

    def latest_verdict(self, run_id: str, partitions: Collection[str] | None = None) -> VerdictRecord | None:
        """The newest verdict, on a candidate with at least these partitions (default: on any)."""
        return self._read(lambda conn: _find_latest_verdict(conn, run_id, partitions))


def abandon_candidates(tx: Tx, run_id: str, actor: Actor, why: str, partitions: Collection[str]) -> None:
    """Abandon the candidates with any of these partitions: the next one will be assembled from other files."""
    query = select(candidate).where(candidate.c.run_id == run_id, candidate.c.state != CandidateState.ABANDONED.value)
    for row in tx.conn.execute(query.order_by(candidate.c.n)).all():
        known = _candidate_from_row(row)
        if not known.detail.get("rows", dict.fromkeys(partitions)).keys().isdisjoint(partitions):
            _move_candidate(tx, known, CandidateState.ABANDONED, actor, {}, why)


def _require_judgeable(run: RunRecord, waves: Sequence[WaveRecord], *, n: int, detail: Mapping[str, Any]) -> None:
    """Refuse a candidate while its waves are computed or published, or after all of them are out."""
    if any(wave.state in _CAN_JUDGE for wave in waves if covers(detail, wave.partitions)):
        return
    require_state(run, [state for state in _CAN_VALIDATE if state not in _BY_WAVE], "validate")
    raise Refusal(_not_judgeable_error(run.run_id, n), run_id=run.run_id, action="validate", body={"n": n})


def _judge_wave(wave: WaveRecord, made: CandidateRecord, judged: RunState) -> WaveState:
    """The state of a wave after this verdict, which may be on the candidate of another wave."""
    if wave.state not in _CAN_JUDGE or not covers(made.detail, wave.partitions):
        return wave.state
    return wave.state if wave.state is WaveState.PART_PUBLISHED else WaveState(judged.value)


def _append_verdict(
    tx: Tx, run: RunRecord, to: RunState, judged: RunState, actor: Actor, body: Mapping[str, Any]
) -> int:
    # a run that is judged again with the same result moves from the state to itself, except where nothing has to follow
    if to is run.state and (to is not judged or to is RunState.VALIDATED):
        return append_entry(tx, actor, "verdict.recorded", run.run_id, body).seq
    return move_run(tx, run, to, actor, f"run.{to.value}", body).audit_seq


def _move_candidate(
    tx: Tx, known: CandidateRecord, to: CandidateState, actor: Actor, values: Mapping[str, Any], why: str = ""
) -> CandidateRecord:
    action = f"candidate.{to.value}"
    if to not in CANDIDATE_MOVES[known.state]:
        error = StateRefused(
            f"{action} was refused for candidate {known.n} of {known.run_id};"
            f" expected one that can become {to.value}, found {known.state.value}",
            state="nothing was changed",
        )
        raise Refusal(error, run_id=known.run_id, action=action, body={"n": known.n, "found": known.state.value})
    facts = dict(values) | ({"why": why} if why else {})
    if "detail" in facts:
        facts["detail"] = digest_of(json.loads(facts["detail"]))
    seq = append_entry(tx, actor, action, known.run_id, {"n": known.n, **facts}).seq
    where = (candidate.c.run_id == known.run_id) & (candidate.c.n == known.n)
    tx.conn.execute(candidate.update().where(where).values(state=to.value, audit_seq=seq, **values))
    return _find_candidate(tx.conn, known.run_id, known.n)


def _find_candidate(conn: Connection, run_id: str, n: int) -> CandidateRecord:
    row = conn.execute(select(candidate).where(candidate.c.run_id == run_id, candidate.c.n == n)).first()
    if row is None:
        raise NotFound(f"run {run_id} has no candidate {n}", state="nothing was changed", run_id=run_id)
    return _candidate_from_row(row)


def _has_verdict(conn: Connection, run_id: str, n: int) -> bool:
    query = select(verdict.c.id).where(verdict.c.run_id == run_id, verdict.c.candidate_n == n).limit(1)
    return conn.execute(query).first() is not None


def _judged_error(known: CandidateRecord) -> StateRefused:
    return StateRefused(
        f"other measurements of candidate {known.n} of {known.run_id} were refused; expected a candidate without a"
        " verdict, found one that is judged",
        state="nothing was changed; the numbers that were judged stay",
        hint=f"errata validate {known.run_id} judges the stored numbers again",
    )


def _not_made_error(known: CandidateRecord) -> StateRefused:
    return StateRefused(
        f"a verdict on candidate {known.n} of {known.run_id} was refused; expected a made candidate,"
        f" found {known.state.value}",
        state="nothing was changed",
        hint=f"errata validate {known.run_id}",
    )


def _not_judgeable_error(run_id: str, n: int) -> StateRefused:
    return StateRefused(
        f"a verdict on candidate {n} of {run_id} was refused; expected a candidate of a whole wave that is computed and"
        " not published",
        state="nothing was changed",
        hint=f"errata validate {run_id}",
    )


def _candidate_from_row(row: Row[Any]) -> CandidateRecord:
    return build_record(CandidateRecord, row, state=CandidateState(row.state), detail=json.loads(row.detail))


def _find_latest_verdict(
    conn: Connection, run_id: str, partitions: Collection[str] | None = None
) -> VerdictRecord | None:
    query = select(verdict).where(verdict.c.run_id == run_id).order_by(verdict.c.id.desc())
    if partitions is None:
        row = conn.execute(query.limit(1)).first()
        return None if row is None else _verdict_from_row(row)
    made = conn.execute(select(candidate).where(candidate.c.run_id == run_id)).all()
    usable = [row.n for row in made if covers(json.loads(row.detail), partitions)]
    row = conn.execute(query.where(verdict.c.candidate_n.in_(usable)).limit(1)).first()
    return None if row is None else _verdict_from_row(row)


def _verdict_from_row(row: Row[Any]) -> VerdictRecord:
    return build_record(VerdictRecord, row, checks=tuple(json.loads(row.checks)))
