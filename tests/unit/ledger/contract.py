"""What every ledger keeps, whatever database is under it: subclass and give a ``ledger`` fixture."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from errata.canonical import sha256
from errata.errors import (
    ApprovalRefused,
    AttemptLost,
    NotFound,
    ScopeLocked,
    StateRefused,
    UsageError,
)
from errata.ledger import AttemptRecord, Ledger, Owner, PartitionState
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.consumer.outbox import Effect, ItemState, Owed
from errata.model.manifest import Chunk
from errata.model.run import ANSWERED, RUN_MOVES, AttemptState, ChunkState, PublicationState, RunState
from errata.ports.measure import Measurement
from support.clock import stopped_clock
from support.ids import numbered
from support.statements import watched_statements
from unit.ledger.steps import (
    ALIVE,
    ANA,
    BO,
    DAYS,
    TABLE,
    actions,
    adopt,
    bring,
    claim,
    intend,
    judge,
    manifest_bytes,
    must_claim,
    plan,
    publish,
    roll_back,
    run_in,
    settle,
)

ILLEGAL = [(a, b) for a, b in itertools.product(RunState, RunState) if b not in RUN_MOVES[a]]
S, P = RunState, PartitionState


class RunContract:
    """Runs, manifests, moves and decisions."""

    def test_a_manifest_is_recorded_once(self, ledger: Ledger):
        """The same manifest again gives the same run and writes nothing, not even an audit entry."""
        first = plan(ledger)
        again, already = ledger.runs.record(
            "bf-other", manifest_bytes("bf-1"), product="p", table="t", partitions=(), chunks=(), parts={}, actor=BO,
            body={},
        )  # fmt: skip
        assert (again, already) == (first, True)
        assert actions(ledger) == ["run.planned"]
        assert first.state is S.PLANNED
        assert first.reason == "reason of bf-1"

    def test_a_run_that_cannot_be_recorded_leaves_nothing(self, ledger: Ledger):
        """A run id that is taken by another manifest is refused whole: no manifest, no part, no chunk."""
        plan(ledger)
        part = b"new part"
        with pytest.raises(StateRefused):
            ledger.runs.record(
                "bf-1", b"{}", product="p", table="t", partitions=(), chunks=(), parts={sha256(part): part}, actor=BO
            )
        with pytest.raises(NotFound):
            ledger.parts.get(sha256(part))
        assert actions(ledger) == ["run.planned", "refused"]

    def test_a_part_under_a_wrong_name_is_refused(self, ledger: Ledger):
        """A part is named by the digest of its bytes, and nothing else."""
        with pytest.raises(UsageError):
            ledger.runs.record(
                "bf-1", b"{}", product="p", table="t", partitions=(), chunks=(), parts={"0" * 64: b"x"}, actor=BO
            )
        assert ledger.runs.list() == ()

    def test_parts_are_kept_by_their_digest(self, ledger: Ledger):
        """The same bytes are one part, and come back as they were."""
        digest = ledger.parts.put(b"\x00bytes")
        assert ledger.parts.put(b"\x00bytes") == digest == sha256(b"\x00bytes")
        assert ledger.parts.get(digest) == b"\x00bytes"

    def test_a_run_is_found_by_any_part_of_its_id_that_no_other_run_has(self, ledger: Ledger):
        """The end, the beginning or the middle; upper case is another text, and so are the wildcards of SQL."""
        plan(ledger, "bf-20260101-revenue-8b0468f8")
        plan(ledger, "bf-20260102-costs-91aa0c11")
        for part in ("8b0468f8", "0468f8", "bf-20260101", "revenue"):
            assert ledger.runs.get(part).run_id == "bf-20260101-revenue-8b0468f8"
        for other in ("8B0468F8", "bf-20260101%8b", "bf_20260101", "", "é", "\x00"):
            with pytest.raises(NotFound, match="not a run of this ledger"):
                ledger.runs.get(other)

    def test_a_part_that_fits_several_runs_is_refused_with_what_tells_them_apart(self, ledger: Ledger):
        """Id, state and product of each are named, to people and to programs, and how many characters are enough."""
        run_in(ledger, S.APPROVED, "bf-20260101-revenue-8b0468f8")
        plan(ledger, "bf-20260101-revenue-91aa0c11")
        with pytest.raises(NotFound) as refused:
            ledger.runs.get("revenue")
        told = refused.value
        assert "bf-20260101-revenue-8b0468f8   approved   " in told.message
        assert "bf-20260101-revenue-91aa0c11   planned   " in told.message
        assert {(one["run_id"][-8:], one["state"]) for one in told.fields["candidates"]} == {
            ("8b0468f8", "approved"), ("91aa0c11", "planned"),
        }  # fmt: skip
        assert told.hint == "the last 4 characters of the id are enough"

    def test_a_full_id_wins_over_a_longer_one_that_contains_it(self, ledger: Ledger):
        """What was copied whole is never ambiguous."""
        plan(ledger, "bf-20260101-revenue-8b0468f8")
        plan(ledger, "bf-20260101-revenue-8b0468f80")
        assert ledger.runs.get("bf-20260101-revenue-8b0468f8").run_id == "bf-20260101-revenue-8b0468f8"

    def test_a_text_that_is_no_run_is_answered_with_the_nearest_ids(self, ledger: Ledger):
        """A slip in the end is compared with the ends; where nothing is near, the newest runs are named."""
        plan(ledger, "bf-20260101-revenue-8b0468f8")
        plan(ledger, "bf-20260102-costs-91aa0c11")
        with pytest.raises(NotFound) as near:
            ledger.runs.get("8b046f88")
        assert near.value.fields["nearest"] == ["bf-20260101-revenue-8b0468f8"]
        with pytest.raises(NotFound) as far:
            ledger.runs.get("zzz")
        assert set(far.value.fields["nearest"]) == {"bf-20260101-revenue-8b0468f8", "bf-20260102-costs-91aa0c11"}

    def test_runs_are_listed_by_product_and_state(self, ledger: Ledger):
        """Filters narrow the list and nothing else does."""
        run_in(ledger, S.APPROVED, "bf-1")
        plan(ledger, "bf-2")
        assert {run.run_id for run in ledger.runs.list()} == {"bf-1", "bf-2"}
        assert [run.run_id for run in ledger.runs.list(states={S.APPROVED})] == ["bf-1"]
        assert ledger.runs.list(product="other") == ()

    def test_every_legal_move_is_made_and_audited(self, ledger: Ledger):
        """Each pair of the model's table succeeds, and its entry names the move."""
        pairs = [(a, b) for a, moves in RUN_MOVES.items() for b in moves]
        for number, (a, b) in enumerate(pairs):
            checks = b in ANSWERED or (a, b) == (S.PLANNED, S.RUNNING)
            run_in(ledger, a, f"bf-{number}", kind="attest" if checks else None)
            assert ledger.runs.move(f"bf-{number}", b, actor=BO).state is b
            last = ledger.audit.readable_entries(f"bf-{number}")[-1]
            assert last.body["move"] == {"from": a.value, "to": b.value}
            assert last.actor == BO
        assert ledger.audit.verify().ok

    def test_every_illegal_move_is_refused_and_audited(self, ledger: Ledger):
        """Each other pair is refused, changes nothing, and leaves a refusal on the record."""
        for state in RunState:
            run_in(ledger, state, f"bf-{state.value}")
        for a, b in ILLEGAL:
            name = f"bf-{a.value}"
            with pytest.raises(StateRefused):
                ledger.runs.move(name, b, actor=BO)
            assert ledger.runs.get(name).state is a
            last = ledger.audit.entries(name, limit=1)[0]
            assert (last.action, last.body["found"], last.body["to"]) == ("refused", a.value, b.value)
        assert ledger.audit.verify().ok

    def test_a_run_that_changes_nothing_ends_with_its_verdict(self, ledger: Ledger):
        """It starts without an approval; what led to a release or a publication of it is refused by the database."""
        for kind in ("attest", "reconcile"):
            for passed, end in ((True, S.ATTESTED), (False, S.DIFFERS)):
                name = f"bf-{kind}-{end.value}"
                run_in(ledger, S.STAGED, name, kind=kind)
                for state in (S.VALIDATED, S.NEEDS_ACCEPTANCE, S.REJECTED):
                    with pytest.raises(StateRefused, match="changes nothing"):
                        ledger.runs.move(name, state, actor=BO)
                ledger.candidates.intend(name, "d", ANA)
                ledger.candidates.record(name, 1, None, "5", ANA)
                ledger.candidates.record_verdict(name, 1, passed, (), "t" * 64, ANA, changes_table=False)
                assert ledger.runs.get(name).state is end
        assert ledger.audit.verify().ok

    def test_a_run_that_may_change_its_table_starts_with_an_approval(self, ledger: Ledger):
        """Neither a start without one nor an end without a gate is possible for any other kind."""
        for number, kind in enumerate((None, "restate", "replay", "attestation")):
            plan(ledger, f"bf-{number}", kind=kind)
            with pytest.raises(StateRefused, match="starts with an approval"):
                ledger.runs.move(f"bf-{number}", S.RUNNING, actor=ANA)
            bring(ledger, f"bf-{number}", S.STAGED)
            with pytest.raises(StateRefused, match="only a run that changes nothing"):
                ledger.runs.move(f"bf-{number}", S.ATTESTED, actor=ANA)

    def test_a_move_from_an_unexpected_state_is_refused(self, ledger: Ledger):
        """``expect`` narrows what the model allows."""
        run_in(ledger, S.APPROVED)
        with pytest.raises(StateRefused, match="expected state paused, found approved"):
            ledger.runs.move("bf-1", S.RUNNING, actor=ANA, expect={S.PAUSED})
        assert ledger.runs.get("bf-1").state is S.APPROVED
        assert actions(ledger)[-1] == "refused"

    def test_refusals_and_notes_from_elsewhere_are_audited(self, ledger: Ledger):
        """What other rules refuse or report is on the record under the person's name."""
        plan(ledger)
        ledger.audit.record_refusal("bf-1", BO, "approve", "bo planned it", {"rule": "four-eyes"})
        ledger.audit.note("bf-1", ANA, "pins.created", {"tags": ["a"]})
        refused, noted = ledger.audit.readable_entries("bf-1")[-2:]
        assert refused.body == {"attempted": "approve", "reason": "bo planned it", "rule": "four-eyes"}
        assert (noted.action, noted.body) == ("pins.created", {"tags": ["a"]})

    def test_a_note_cannot_pose_as_a_move(self, ledger: Ledger):
        """The part of an entry that names a move is written by moves only."""
        plan(ledger)
        with pytest.raises(UsageError):
            ledger.audit.note("bf-1", ANA, "run.approved", {"move": {"from": "planned", "to": "approved"}})

    def test_a_decision_moves_the_run_once(self, ledger: Ledger):
        """Approving twice gives the same answer and one record."""
        run = plan(ledger)
        moved, already = ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "fine", BO)
        assert (moved.state, already) == (S.APPROVED, False)
        again, already = ledger.approvals.decide("bf-1", run.manifest_digest, "bo", "approved", "fine", BO)
        assert (again, already) == (moved, True)
        (approval,) = ledger.approvals.list("bf-1")
        assert (approval.person, approval.decision, approval.digest) == ("bo", "approved", run.manifest_digest)
        with pytest.raises(StateRefused):
            ledger.approvals.decide("bf-1", run.manifest_digest, "cy", "declined", "", BO)

    def test_a_decision_over_another_digest_is_refused(self, ledger: Ledger):
        """Approval binds to the bytes that were sealed."""
        plan(ledger)
        with pytest.raises(ApprovalRefused):
            ledger.approvals.decide("bf-1", "f" * 64, "bo", "approved", "", BO)
        assert ledger.approvals.list("bf-1") == ()
        assert actions(ledger)[-1] == "refused"


class ChunkContract:
    """Claims, fences and results."""

    def test_chunks_are_claimed_in_order_and_only_while_running(self, ledger: Ledger):
        """A run that is not running hands out nothing; then the first pending chunk comes first."""
        run_in(ledger, S.APPROVED)
        assert claim(ledger) is None
        ledger.runs.move("bf-1", S.RUNNING, actor=ANA)
        taken = [must_claim(ledger) for _ in DAYS]
        assert [(a.chunk_id, a.fence, a.partitions) for a in taken] == [
            (f"c{n:04d}", 1, (day,)) for n, day in enumerate(DAYS)
        ]
        assert claim(ledger) is None
        assert [one.state for one in ledger.progress.attempts("bf-1")] == [AttemptState.RUNNING] * 3

    def test_an_expired_lease_is_taken_over_with_a_higher_fence(self, ledger: Ledger):
        """The successor's fence is one more; the old attempt can neither prolong, fail nor finish."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        old = must_claim(ledger, lease=0)
        new = must_claim(ledger, owner=Owner("w2", "elsewhere", 2, "x"))
        assert (new.chunk_id, new.fence) == (old.chunk_id, 2)
        assert ledger.chunks.heartbeat(new, 60)
        assert not ledger.chunks.heartbeat(old, 60)
        with pytest.raises(AttemptLost):
            adopt(ledger, old)
        with pytest.raises(AttemptLost):
            ledger.chunks.fail(old, error_code="x", message="late", actor=ANA)
        assert not ledger.chunks.give_back(old, actor=ANA)
        assert actions(ledger)[-4:] == ["chunk.again", "chunk.claimed", "STALE_FENCE", "STALE_FENCE"]
        adopt(ledger, new, "2")
        with pytest.raises(AttemptLost):
            adopt(ledger, old, "1")
        (chunk,) = ledger.progress.chunks("bf-1")
        assert (chunk.state, chunk.snapshot_id, chunk.fence) == (ChunkState.DONE, "2", 2)

    def test_a_dead_owner_is_taken_over_before_its_lease_ends(self, ledger: Ledger):
        """The caller's word that a process is gone is enough; a living one keeps its lease."""
        plan(ledger, chunks=2)
        bring(ledger, "bf-1", S.RUNNING)
        dead = Owner("dead", "here", 9, "y")
        first, second = must_claim(ledger, owner=dead), must_claim(ledger)
        successor = ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, is_dead=lambda owner: owner == dead)
        assert successor is not None
        assert (successor.chunk_id, successor.fence) == (first.chunk_id, 2)
        lost = next(entry for entry in ledger.audit.entries("bf-1") if entry.action == "attempt.lost")
        assert lost.body["reason"] == "owner-dead"
        assert ledger.chunks.heartbeat(second, 60)

    def test_a_heartbeat_keeps_a_lease(self, ledger: Ledger):
        """A lease that ran out but was not taken over is prolonged by its owner, and then held."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        held = must_claim(ledger, lease=0)
        assert ledger.chunks.heartbeat(held, 60)
        assert claim(ledger) is None
        (attempt,) = ledger.progress.attempts("bf-1")
        assert attempt.lease_until > ledger.now_ms()

    def test_adopting_twice_is_adopting_once(self, ledger: Ledger):
        """The same snapshot again is no news; another one for the same attempt is refused."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        attempt = must_claim(ledger)
        adopt(ledger, attempt, "1")
        before = actions(ledger)
        adopt(ledger, attempt, "1")
        assert actions(ledger) == before
        with pytest.raises(AttemptLost):
            adopt(ledger, attempt, "2")

    def test_a_failed_chunk_waits_for_retry(self, ledger: Ledger):
        """Failure is recorded with its reason; retry makes the chunk pending, and only a failed one."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        ledger.chunks.fail(must_claim(ledger), error_code="transform-failed", message="boom", actor=ANA)
        (failed,) = ledger.progress.chunks("bf-1")
        assert (failed.state, failed.error_code, failed.error) == (ChunkState.FAILED, "transform-failed", "boom")
        assert claim(ledger) is None
        (again,) = ledger.outcomes.retry("bf-1", None, ANA)
        assert (again.chunk_id, again.state) == ("c0000", ChunkState.PENDING)
        assert ledger.outcomes.retry("bf-1", None, ANA) == ()
        with pytest.raises(StateRefused):
            ledger.outcomes.retry("bf-1", "c0000", ANA)
        with pytest.raises(NotFound):
            ledger.outcomes.retry("bf-1", "c0009", ANA)
        assert must_claim(ledger).fence == 2

    def test_a_released_chunk_is_pending_again(self, ledger: Ledger):
        """An interrupted worker gives its chunk back, and that does not count against the chunk."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        for fence in range(1, 9):
            attempt = must_claim(ledger)
            assert attempt.fence == fence
            assert ledger.chunks.give_back(attempt, actor=ANA)
        assert ledger.progress.counts("bf-1").pending == 1

    def test_the_fate_of_a_chunk_that_lost_its_worker_is_the_callers(self, ledger: Ledger):
        """Quarantined by the caller's rule, the chunk waits for a person and the others go on."""
        plan(ledger, chunks=2)
        bring(ledger, "bf-1", S.RUNNING)
        healthy = must_claim(ledger)
        seen: list[FailedAttempt] = []

        def third_time_quarantines(loss: FailedAttempt) -> ChunkOutcome:
            seen.append(loss)
            return ChunkOutcome(
                ChunkState.QUARANTINED if loss.tries >= 3 else ChunkState.PENDING, why="killed them all"
            )

        def take() -> AttemptRecord | None:
            return ledger.chunks.claim(
                "bf-1", ALIVE, lease_seconds=0, actor=ANA, after_loss=third_time_quarantines, is_dead=lambda _: False
            )

        assert all(take() for _ in range(3))
        assert take() is None
        assert [(loss.tries, loss.losses, loss.reason) for loss in seen] == [
            (1, 1, "lease-expired"),
            (2, 2, "lease-expired"),
            (3, 3, "lease-expired"),
        ]
        assert ledger.progress.counts("bf-1").quarantined == 1
        adopt(ledger, healthy)
        ledger.outcomes.retry("bf-1", "c0001", ANA)
        assert must_claim(ledger).fence == 4

    def test_a_chunk_may_be_cut_into_pieces(self, ledger: Ledger):
        """The pieces have its partitions, its place and its losses; the old chunk is no longer there to claim."""
        plan(ledger, chunks=2)
        bring(ledger, "bf-1", S.RUNNING)
        first = must_claim(ledger)
        pieces = tuple((name,) for name in first.partitions) * 2
        fate = ChunkOutcome(ChunkState.REPLACED, pieces=pieces, why="smaller")
        ledger.chunks.fail(first, error_code="memory", message="heap", actor=ANA, fate=lambda _: fate, lost_worker=True)
        found = ledger.progress.chunks("bf-1")
        assert [chunk.chunk_id for chunk in found] == ["c003", "c004", "c0001"]
        assert [chunk.losses for chunk in found] == [1, 1, 0]
        assert ledger.progress.counts("bf-1").total == 3
        assert (must_claim(ledger).chunk_id, must_claim(ledger).chunk_id) == ("c003", "c004")

    def test_waiting_chunks_are_packed_anew_only_while_all_of_them_wait(self, ledger: Ledger):
        """Same partitions in other chunks; refused once one of them was taken."""
        plan(ledger, chunks=3)
        bring(ledger, "bf-1", S.RUNNING)
        names = tuple(name for chunk in ledger.progress.chunks("bf-1")[1:] for name in chunk.partitions)
        assert ledger.outcomes.repack("bf-1", [Chunk("", names, 1, 1)], ANA, "faster than thought")
        assert [chunk.partitions for chunk in ledger.progress.chunks("bf-1")][1:] == [names]
        must_claim(ledger), must_claim(ledger)
        assert not ledger.outcomes.repack("bf-1", [Chunk("", names, 1, 1)], ANA, "again")

    def test_chunks_of_several_waves_are_packed_anew_wave_by_wave(self, ledger: Ledger):
        """Each new chunk has partitions of one wave, stays in it and keeps its place; a mixture changes nothing."""
        days = (*DAYS, "2026-01-04")
        chunks = [Chunk(f"c{n}", (day,), 1, 1, 1 + n // 2) for n, day in enumerate(days)]
        ledger.runs.record(
            "bf-1", manifest_bytes("bf-1"), product="fin.daily_revenue", table=TABLE, partitions=days, chunks=chunks,
            parts={}, actor=ANA, body={},
        )  # fmt: skip
        bring(ledger, "bf-1", S.RUNNING)
        assert not ledger.outcomes.repack("bf-1", [Chunk("", days, 4, 4, 1)], ANA, "all in one")
        new = [Chunk("", days[:2], 2, 2, 1), Chunk("", days[2:], 2, 2, 2)]
        assert ledger.outcomes.repack("bf-1", new, ANA, "larger")
        assert [(one.wave, one.partitions) for one in ledger.progress.chunks("bf-1")] == [(1, days[:2]), (2, days[2:])]

    def test_a_chunk_that_waits_for_its_backoff_is_not_taken(self, ledger: Ledger):
        """The wait counts on the database's clock."""
        plan(ledger, chunks=1)
        bring(ledger, "bf-1", S.RUNNING)
        later = ChunkOutcome(ChunkState.PENDING, wait_seconds=3600)
        ledger.chunks.fail(must_claim(ledger), error_code="engine", message="flaky", actor=ANA, fate=lambda _: later)
        assert claim(ledger) is None
        assert ledger.progress.counts("bf-1").pending == 1

    def test_in_order_a_chunk_waits_for_all_before_it(self, ledger: Ledger):
        """Strictly one after the other, whichever worker asks."""
        plan(ledger, chunks=2)
        bring(ledger, "bf-1", S.RUNNING)
        first = ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, in_order=True)
        assert first is not None
        assert ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, in_order=True) is None
        adopt(ledger, first)
        second = ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, in_order=True)
        assert second is not None
        assert second.chunk_id != first.chunk_id

    def test_no_more_chunks_run_than_allowed(self, ledger: Ledger):
        """The limit counts every worker's chunks."""
        plan(ledger, chunks=3)
        bring(ledger, "bf-1", S.RUNNING)
        must_claim(ledger)
        assert ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, max_running=1) is None
        assert ledger.chunks.claim("bf-1", ALIVE, lease_seconds=60, actor=ANA, max_running=2) is not None

    def test_the_pace_of_a_run_is_that_of_all_its_workers(self, ledger: Ledger):
        """What runs, what was adopted, and when in the last hour."""
        plan(ledger, chunks=3)
        bring(ledger, "bf-1", S.RUNNING)
        adopt(ledger, must_claim(ledger), rows=5)
        must_claim(ledger)
        pace = ledger.progress.pace("bf-1")
        assert (pace.running, pace.adopted) == (1, 1)
        assert [rows for _, rows, _ in pace.recent] == [10, 10], "rows of input, whatever was written"
        (ended,) = pace.adopted_last_hour
        assert ended == pace.last_ended_ms
        assert 0 <= pace.now_ms - ended < 60_000

    def test_a_fact_is_found_out_once(self, ledger: Ledger):
        """The second worker gets the first one's."""
        plan(ledger, chunks=1)
        assert ledger.facts.record("bf-1", "canary", {"passed": 1}, ANA) == ({"passed": 1}, False)
        assert ledger.facts.record("bf-1", "canary", {"passed": 0}, ANA) == ({"passed": 1}, True)
        assert ledger.facts.list("bf-1") == {"canary": {"passed": 1}}

    def test_a_cancelled_run_lets_chunks_in_flight_finish(self, ledger: Ledger):
        """Nothing new starts; what was taken from its worker is refused."""
        plan(ledger, chunks=2)
        bring(ledger, "bf-1", S.RUNNING)
        attempt, other = must_claim(ledger), must_claim(ledger)
        ledger.runs.move("bf-1", S.CANCELLED, actor=ANA)
        assert claim(ledger) is None
        adopt(ledger, attempt)
        assert ledger.chunks.reclaim("bf-1", actor=ANA, reason="cancelled") == 1
        assert not ledger.chunks.heartbeat(other, 60)
        with pytest.raises(AttemptLost):
            adopt(ledger, other)
        with pytest.raises(StateRefused):
            ledger.outcomes.retry("bf-1", None, ANA)

    def test_counts_add_up(self, ledger: Ledger):
        """Counts are by state, chunks with a second attempt are told, adopted rows are summed."""
        plan(ledger, chunks=4)
        bring(ledger, "bf-1", S.RUNNING)
        adopt(ledger, must_claim(ledger), rows=5)
        ledger.chunks.fail(must_claim(ledger), error_code="x", message="y", actor=ANA)
        must_claim(ledger, lease=0)
        must_claim(ledger)
        must_claim(ledger)
        counts = ledger.progress.counts("bf-1")
        assert (counts.total, counts.done, counts.failed, counts.running, counts.pending) == (4, 1, 1, 2, 0)
        assert (counts.recomputed, counts.rows, counts.quarantined) == (1, 5, 0)

    def test_the_counts_of_all_runs_are_one_query(self, ledger: Ledger):
        """However many runs there are, their counts cost one statement, and are those of each run."""
        for name, chunks in (("bf-1", 2), ("bf-2", 3), ("bf-3", 0)):
            plan(ledger, name, chunks=chunks)
        bring(ledger, "bf-2", S.RUNNING)
        adopt(ledger, must_claim(ledger, "bf-2"), rows=5)
        said: list[str] = []
        with watched_statements(said.append):
            counts = ledger.progress.counts_by_run()
        assert [sql.split()[0] for sql in said] == ["BEGIN", "SELECT"]
        assert counts == {name: ledger.progress.counts(name) for name in ("bf-1", "bf-2")}
        assert ledger.progress.counts("bf-3").total == 0


class CandidateContract:
    """Candidates, measurements, verdicts and warnings."""

    def test_candidates_are_numbered_and_intended_first(self, ledger: Ledger):
        """Each intent gets the next number and branch; recording it twice is recording it once."""
        run_in(ledger, S.STAGED)
        one = ledger.candidates.intend("bf-1", "d" * 64, ANA)
        assert (one.n, one.branch, one.snapshot_id) == (1, "errata_bf-1_c1_dddddddd", None)
        made = ledger.candidates.record("bf-1", 1, "10", "11", ANA)
        assert ledger.candidates.record("bf-1", 1, "10", "11", ANA) == made
        with pytest.raises(StateRefused):
            ledger.candidates.record("bf-1", 1, "10", "12", ANA)
        two = ledger.candidates.intend("bf-1", "e" * 64, ANA)
        assert ledger.candidates.abandon("bf-1", two.n, ANA).state == "abandoned"
        assert [c.n for c in ledger.candidates.list("bf-1")] == [1, 2]
        assert ledger.candidates.latest("bf-1") == ledger.candidates.list("bf-1")[-1]

    def test_measurements_are_replaced_as_a_whole(self, ledger: Ledger):
        """A second scan of a candidate leaves nothing of the first, and other candidates alone."""
        run_in(ledger, S.STAGED)
        for n in (1, 2):
            ledger.candidates.intend("bf-1", "d" * 64, ANA)
            ledger.candidates.record_measurements("bf-1", n, [Measurement("candidate", None, "rows", str(n))], ANA)
        again = [
            Measurement("partition", DAYS[0], "sum(x)", "0.10", exact=False),
            Measurement("partition", DAYS[1], "sum(x)", None),
        ]
        assert ledger.candidates.record_measurements("bf-1", 1, again, ANA) == 2
        assert ledger.candidates.measurements("bf-1", 1) == tuple(again)
        assert ledger.candidates.measurements("bf-1", 2) == (Measurement("candidate", None, "rows", "2"),)

    def test_judged_numbers_stay(self, ledger: Ledger):
        """After a verdict other numbers are refused, and the same ones again are no news."""
        run_in(ledger, S.STAGED)
        ledger.candidates.intend("bf-1", "d" * 64, ANA)
        ledger.candidates.record("bf-1", 1, None, "11", ANA)
        numbers = [Measurement("candidate", day, "rows", "1") for day in DAYS]
        ledger.candidates.record_measurements("bf-1", 1, numbers, ANA)
        judge(ledger, passed=False)
        before = actions(ledger)
        assert ledger.candidates.record_measurements("bf-1", 1, reversed(numbers), ANA) == 3
        assert actions(ledger) == before
        for other in ([], numbers[:2], [*numbers, numbers[0]], [replace(numbers[0], exact=False), *numbers[1:]]):
            with pytest.raises(StateRefused, match="expected a candidate without a verdict"):
                ledger.candidates.record_measurements("bf-1", 1, other, ANA)
        assert ledger.candidates.measurements("bf-1", 1) == tuple(numbers)
        assert actions(ledger) == [*before, *["refused"] * 4]
        ledger.candidates.intend("bf-1", "e" * 64, ANA)
        assert ledger.candidates.record_measurements("bf-1", 2, numbers, ANA) == 3

    def test_a_verdict_moves_the_run(self, ledger: Ledger):
        """A warning waits, a block rejects, an accepted warning validates: all of it stays on the record."""
        run_in(ledger, S.STAGED)
        ledger.candidates.intend("bf-1", "d" * 64, ANA)
        with pytest.raises(StateRefused):
            judge(ledger, [], "t" * 64, passed=False)
        ledger.candidates.record("bf-1", 1, None, "11", ANA)
        judge(ledger, [{"name": "drift", "level": "warn"}], "t" * 64, passed=False)
        assert ledger.runs.get("bf-1").state is S.NEEDS_ACCEPTANCE
        judge(ledger, [{"name": "drift", "level": "warn"}, {"name": "rows", "level": "block"}], "u" * 64, passed=False)
        assert ledger.runs.get("bf-1").state is S.REJECTED
        accepted = ledger.approvals.accept_warning("bf-1", "drift", "known", "bo", BO)
        assert ledger.approvals.accept_warning("bf-1", "drift", "known", "bo", BO) == accepted
        assert ledger.approvals.accepted_warnings("bf-1") == (accepted,)
        judge(ledger, [{"name": "drift", "level": "accepted"}], "t" * 64, passed=True)
        assert ledger.runs.get("bf-1").state is S.VALIDATED
        latest = ledger.candidates.latest_verdict("bf-1")
        assert latest is not None
        assert (latest.passed, latest.candidate_n, latest.checks[0]["level"]) == (True, 1, "accepted")
        judge(ledger, [], "t" * 64, passed=True)
        assert ledger.runs.get("bf-1").state is S.VALIDATED
        assert actions(ledger)[-1] == "verdict.recorded"

    def test_a_run_that_is_not_staged_is_not_judged(self, ledger: Ledger):
        """No candidate before the run runs or after it is over; a canary's candidate in between gets no verdict."""
        for number, state in enumerate((S.APPROVED, S.CANCELLED), 2):
            run_in(ledger, state, f"bf-{number}")
            with pytest.raises(StateRefused):
                ledger.candidates.intend(f"bf-{number}", "d" * 64, ANA)
        run_in(ledger, S.RUNNING)
        ledger.candidates.intend("bf-1", "d" * 64, ANA)
        ledger.candidates.record("bf-1", 1, None, "5", ANA)
        with pytest.raises(StateRefused):
            judge(ledger, passed=True)


class PublicationContract:
    """Intents, outcomes, acceptance, hazards and the guard."""

    def test_a_publication_moves_the_run_and_accepts_its_partitions(self, ledger: Ledger):
        """Intent, then outcome: states, acceptance and locks follow in one step each."""
        run_in(ledger, S.VALIDATED)
        pub = intend(ledger, "bf-1", DAYS)
        assert (numbered(pub.pub_id), pub.undo_branch) == ("bf-1-p1", f"errata_{pub.pub_id}_undo")
        assert ledger.runs.get("bf-1").state is S.PUBLISHING
        assert ledger.publications.list_open(TABLE) == ledger.publications.list_open(run_id="bf-1") == (pub,)
        assert ledger.partitions.accepted(TABLE) == {}
        done = settle(ledger, pub)
        assert settle(ledger, pub) == done
        assert (done.state, done.result_snapshot_id) == (PublicationState.COMMITTED, f"s-{pub.pub_id}")
        assert ledger.runs.get("bf-1").state is S.PUBLISHED
        assert ledger.publications.list_open() == ()
        assert {day: a.run_id for day, a in ledger.partitions.accepted(TABLE).items()} == dict.fromkeys(DAYS, "bf-1")
        assert actions(ledger)[-2:] == ["publish.intended", "publish.committed"]

    def test_an_abandoned_intent_restores_the_state_before(self, ledger: Ledger):
        """Validated stays validated; published in part stays so; the partitions are free again."""
        run_in(ledger, S.VALIDATED)
        settle(ledger, intend(ledger, "bf-1", DAYS), "abandoned")
        assert ledger.runs.get("bf-1").state is S.VALIDATED
        publish(ledger, "bf-1", DAYS[:1])
        settle(ledger, intend(ledger, "bf-1", DAYS[1:]), "abandoned")
        assert ledger.runs.get("bf-1").state is S.PART_PUBLISHED
        assert [numbered(pub.pub_id) for pub in ledger.publications.list("bf-1")] == ["bf-1-p1", "bf-1-p2", "bf-1-p3"]
        publish(ledger, "bf-1", DAYS[1:])
        assert ledger.runs.get("bf-1").state is S.PUBLISHED

    def test_an_outcome_is_final(self, ledger: Ledger):
        """A settled publication cannot be settled otherwise, and the try is audited."""
        run_in(ledger, S.VALIDATED)
        pub = intend(ledger, "bf-1", DAYS)
        with pytest.raises(UsageError):
            ledger.publications.settle(pub.pub_id, "committed", actor=BO)
        settle(ledger, pub)
        with pytest.raises(StateRefused, match="expected an open intent, found committed as snapshot"):
            settle(ledger, pub, "abandoned")
        with pytest.raises(StateRefused, match="expected an open intent, found committed as snapshot"):
            ledger.publications.update_intent(pub.pub_id, {"try": 2}, actor=BO)
        assert not ledger.publications.renew(pub.pub_id, 60)
        assert actions(ledger)[-2:] == ["refused", "refused"]

    def test_a_new_try_keeps_the_details_before(self, ledger: Ledger):
        """What each try meant to commit stays readable."""
        run_in(ledger, S.VALIDATED)
        pub = intend(ledger, "bf-1", DAYS)
        again = ledger.publications.update_intent(pub.pub_id, {"try": 2}, actor=BO, base_snapshot_id="77")
        assert (len(again.details), again.base_snapshot_id) == (2, "77")
        assert ledger.publications.detail(pub.pub_id) == {"try": 2}
        assert b"2026-01-01" in ledger.parts.get(again.details[0])

    def test_partitions_under_publication_are_locked(self, ledger: Ledger):
        """The second run is refused by name of the holder; disjoint scopes go on side by side."""
        run_in(ledger, S.VALIDATED, "bf-1", DAYS[:2])
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[1:])
        run_in(ledger, S.VALIDATED, "bf-3", DAYS[2:])
        first = intend(ledger, "bf-1", DAYS[:2], lease=0)
        with pytest.raises(ScopeLocked) as locked:
            intend(ledger, "bf-2", DAYS[1:])
        assert (locked.value.fields["holder"], locked.value.fields["partitions"]) == (first.pub_id, [DAYS[1]])
        assert locked.value.fields["lease_expired"]
        assert ledger.runs.get("bf-2").state is S.VALIDATED
        assert ledger.audit.entries("bf-2")[-1].body["holders"] == [first.pub_id]
        third = intend(ledger, "bf-3", DAYS[2:])
        settle(ledger, first)
        settle(ledger, third)
        publish(ledger, "bf-2", DAYS[1:])
        assert ledger.partitions.accepted(TABLE)[DAYS[1]].run_id == "bf-2"

    def test_only_partitions_of_the_run_are_published_and_only_once(self, ledger: Ledger):
        """Foreign, repeated, missing or already published partitions are refused."""
        run_in(ledger, S.VALIDATED)
        for days in ([], ["2026-02-01"], [DAYS[0], DAYS[0]]):
            with pytest.raises(StateRefused):
                intend(ledger, "bf-1", days)
        publish(ledger, "bf-1", DAYS[:1])
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS[:1])
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS[1:], "rollback")

    def test_a_run_has_one_open_intent(self, ledger: Ledger):
        """While a rollback is open the run starts nothing else."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1", DAYS[:2])
        intend(ledger, "bf-1", DAYS[:1], "rollback")
        with pytest.raises(ScopeLocked):
            intend(ledger, "bf-1", DAYS[2:])
        with pytest.raises(ScopeLocked):
            intend(ledger, "bf-1", DAYS[1:2], "rollback")

    def test_rollback_acts_on_partitions(self, ledger: Ledger):
        """The run stays published while one of its partitions is accepted, then it is rolled back for good."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1")
        back = roll_back(ledger, "bf-1", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.PUBLISHED
        assert ledger.partitions.states("bf-1") == dict(zip(DAYS, (P.ROLLED_BACK, P.ACCEPTED, P.ACCEPTED), strict=True))
        accepted = ledger.partitions.accepted(TABLE)[DAYS[0]]
        assert (accepted.run_id, accepted.pub_id, accepted.action) == (None, back.pub_id, "rolled_back")
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS[:1], "rollback")
        roll_back(ledger, "bf-1", DAYS[1:])
        assert ledger.runs.get("bf-1").state is S.ROLLED_BACK
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS)
        assert ledger.audit.verify().ok

    def test_a_partition_taken_back_is_not_published_again_by_its_run(self, ledger: Ledger):
        """Published in part, one day rolled back: the rest may be published, that day may not."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1", DAYS[:2])
        roll_back(ledger, "bf-1", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.PART_PUBLISHED
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS[:1])
        publish(ledger, "bf-1", DAYS[2:])
        assert ledger.runs.get("bf-1").state is S.PUBLISHED

    def test_an_abandoned_rollback_changes_nothing(self, ledger: Ledger):
        """No acceptance, no hazard, no move; the next try has its own id."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1")
        settle(ledger, intend(ledger, "bf-1", DAYS, "rollback"), "abandoned")
        assert ledger.runs.get("bf-1").state is S.PUBLISHED
        assert ledger.guards.open_hazards() == ()
        assert numbered(roll_back(ledger, "bf-1").pub_id) == "bf-1-r3"

    def test_a_partition_stays_superseded_however_many_runs_are_published_over_it(self, ledger: Ledger):
        """Only a rollback of the run's own publication makes its partition rolled back."""
        for name in ("bf-1", "bf-2", "bf-3"):
            run_in(ledger, S.VALIDATED, name)
            publish(ledger, name, DAYS)
        assert ledger.partitions.states("bf-1") == dict.fromkeys(DAYS, P.SUPERSEDED)
        assert ledger.partitions.states("bf-2") == dict.fromkeys(DAYS, P.SUPERSEDED)

    def test_a_run_is_superseded_when_nothing_of_it_is_accepted_and_returns(self, ledger: Ledger):
        """Taken over day by day, and back again when the later runs are rolled back."""
        run_in(ledger, S.VALIDATED, "bf-1", DAYS)
        publish(ledger, "bf-1")
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        run_in(ledger, S.VALIDATED, "bf-3", DAYS[1:])
        publish(ledger, "bf-2", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.PUBLISHED
        publish(ledger, "bf-3", DAYS[1:])
        assert ledger.runs.get("bf-1").state is S.SUPERSEDED
        with pytest.raises(StateRefused):
            intend(ledger, "bf-1", DAYS[:1], "rollback")
        roll_back(ledger, "bf-3", DAYS[1:2])
        assert ledger.runs.get("bf-1").state is S.PUBLISHED
        assert ledger.runs.get("bf-3").state is S.PUBLISHED
        assert ledger.partitions.states("bf-1") == dict(
            zip(DAYS, (P.SUPERSEDED, P.ACCEPTED, P.SUPERSEDED), strict=True)
        )
        back = ledger.partitions.accepted(TABLE, DAYS[1:2])[DAYS[1]]
        assert (back.run_id, numbered(back.origin_pub_id or ""), numbered(back.pub_id)) == (
            "bf-1",
            "bf-1-p1",
            "bf-3-r2",
        )
        roll_back(ledger, "bf-1", DAYS[1:2])
        assert ledger.runs.get("bf-1").state is S.SUPERSEDED
        assert ledger.partitions.accepted(TABLE)[DAYS[1]].run_id is None
        history = ledger.partitions.history(TABLE, DAYS[1])
        assert [(a.run_id, a.action) for a in history] == [
            ("bf-1", "published"),
            ("bf-3", "published"),
            ("bf-1", "rolled_back"),
            (None, "rolled_back"),
        ]
        assert ledger.audit.verify().ok

    def test_runs_unwind_as_a_stack(self, ledger: Ledger):
        """Three runs on one day, taken back one by one, down to what was there before Errata."""
        names = ("bf-1", "bf-2", "bf-3")
        for name in names:
            run_in(ledger, S.VALIDATED, name, DAYS[:1])
            publish(ledger, name, DAYS[:1])
        for name, below in (("bf-3", "bf-2"), ("bf-2", "bf-1"), ("bf-1", None)):
            assert ledger.partitions.accepted(TABLE)[DAYS[0]].run_id == name
            roll_back(ledger, name, DAYS[:1])
            accepted = ledger.partitions.accepted(TABLE)[DAYS[0]]
            assert (accepted.run_id, numbered(accepted.origin_pub_id or "")) == (below, f"{below}-p1" if below else "")
        assert {ledger.runs.get(name).state for name in names} == {S.ROLLED_BACK}

    def test_what_was_the_truth_at_a_time(self, ledger: Ledger):
        """Each partition's newest row up to then; before the first there is none; other tables stay out."""
        run_in(ledger, S.VALIDATED, "bf-1", DAYS)
        publish(ledger, "bf-1")
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        publish(ledger, "bf-2", DAYS[:1])
        roll_back(ledger, "bf-2", DAYS[:1])
        moments = [datetime.fromisoformat(row.at) for row in ledger.partitions.history(TABLE, DAYS[0])]
        first, second, third = moments
        assert first < second < third

        def told(moment: datetime, table: str | None = TABLE) -> dict[str, str | None]:
            return {row.partition: row.run_id for row in ledger.partitions.accepted_at(moment, table)}

        assert told(first - timedelta(microseconds=1000)) == {}
        assert told(first) == dict.fromkeys(DAYS, "bf-1")
        assert told(second) == {**dict.fromkeys(DAYS, "bf-1"), DAYS[0]: "bf-2"}
        assert told(third + timedelta(days=1), None) == dict.fromkeys(DAYS, "bf-1")
        assert told(third, "lake.other") == {}

    def test_a_clock_that_was_set_back_does_not_bring_an_older_truth_back(self, ledger: Ledger):
        """Deeds count in their order: what was done last is true from its own time on, whatever came before it says."""
        noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
        run_in(ledger, S.VALIDATED, "bf-1", DAYS[:1])
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        for run_id, at in (("bf-1", noon), ("bf-2", noon - timedelta(hours=1))):
            with stopped_clock(at):
                publish(ledger, run_id, DAYS[:1])
        for moment in (noon - timedelta(hours=1), noon, noon + timedelta(hours=1)):
            (row,) = ledger.partitions.accepted_at(moment, TABLE)
            assert row.run_id == "bf-2"
        assert ledger.partitions.accepted_at(noon - timedelta(hours=2), TABLE) == ()
        assert ledger.partitions.accepted(TABLE)[DAYS[0]].run_id == "bf-2"
        assert ledger.audit.verify().ok

    def test_a_run_published_in_part_returns_in_part(self, ledger: Ledger):
        """Superseded and restored, it is what it was."""
        run_in(ledger, S.VALIDATED, "bf-1", DAYS)
        publish(ledger, "bf-1", DAYS[:1])
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        publish(ledger, "bf-2", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.SUPERSEDED
        roll_back(ledger, "bf-2", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.PART_PUBLISHED
        assert ledger.runs.get("bf-2").state is S.ROLLED_BACK

    def test_a_run_taken_over_while_publishing_finds_its_state_when_settled(self, ledger: Ledger):
        """Its open intent hides it from the other run; settled as abandoned it is superseded."""
        run_in(ledger, S.VALIDATED, "bf-1", DAYS)
        publish(ledger, "bf-1", DAYS[:1])
        second = intend(ledger, "bf-1", DAYS[1:])
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        publish(ledger, "bf-2", DAYS[:1])
        assert ledger.runs.get("bf-1").state is S.PUBLISHING
        settle(ledger, second, "abandoned")
        assert ledger.runs.get("bf-1").state is S.SUPERSEDED
        assert ledger.audit.verify().ok

    def test_what_a_publication_owes_is_owed_from_its_commit_until_it_is_paid(self, ledger: Ledger):
        """Conditional with the intent, owed with the commit; an intent that came to nothing owes nothing."""
        run_in(ledger, S.VALIDATED)
        owes = [Owed(Effect.CORRECTIONS, "published", partitions=DAYS, payload={"table": "c"})]
        lost = settle(ledger, intend(ledger, "bf-1", DAYS, owes=owes), "abandoned")
        pub = intend(ledger, "bf-1", DAYS, owes=owes)
        assert ledger.outbox.list_open() == ledger.outbox.queues() == ()
        settle(ledger, pub)
        (item,) = ledger.outbox.list_open(table=TABLE)
        assert (item.key, item.seq) == (f"{pub.pub_id}/published/corrections", 1)
        assert [one.state for one in ledger.outbox.list(pub_id=lost.pub_id)] == [ItemState.VOID]
        assert ledger.outbox.queues(table="lake.another") == ()
        (queue,) = ledger.outbox.queues(table=TABLE)
        claimed = ledger.outbox.claim(queue, ALIVE, lease_seconds=60, is_dead=lambda _: False)
        assert claimed is not None
        assert ledger.outbox.record_paid(claimed, {"snapshot_id": "9"}, ANA)
        assert ledger.outbox.list_open() == ledger.outbox.queues() == ()
        assert ledger.outbox.get(item.item_id).result == {"snapshot_id": "9"}
        assert ledger.audit.verify().ok

    def test_a_payer_that_lost_its_item_records_nothing(self, ledger: Ledger):
        """Its lease ran out and another one claimed the item: the fence has grown."""
        run_in(ledger, S.VALIDATED)
        ledger.outbox.owe("bf-1", "c", [Owed(Effect.TELL, "published", "bi")], ANA)
        slept = ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=0, is_dead=lambda _: False)
        other = replace(ALIVE, name="w2")
        taken = ledger.outbox.claim("bi/tell", other, lease_seconds=60, is_dead=lambda _: False)
        assert slept is not None
        assert taken is not None
        assert (taken.fence, taken.attempts) == (2, 2)
        assert ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=60, is_dead=lambda _: False) is None
        assert not ledger.outbox.renew(slept, 60)
        assert not ledger.outbox.record_paid(slept, {}, ANA)
        assert not ledger.outbox.record_failed(slept, "x", ANA)
        assert not ledger.outbox.record_attempt(slept, "x", 1)
        assert not ledger.outbox.put_off(slept, 1, {})
        assert ledger.outbox.record_paid(taken, {}, ANA)

    def test_a_newer_item_that_reads_the_acceptance_is_paid_for_older_ones(self, ledger: Ledger):
        """Also for one that failed; the record says which item it was paid with."""
        run_in(ledger, S.VALIDATED)
        for n, days in enumerate((DAYS[:1], DAYS[:2], DAYS)):
            ledger.outbox.owe("bf-1", f"c{n}", [Owed(Effect.RECOVER, "published", "bi", tuple(days))], ANA)
            if n == 0:
                first = ledger.outbox.claim(f"bi/recover/{TABLE}", ALIVE, lease_seconds=60)
                assert first is not None
                assert ledger.outbox.record_failed(first, "down", ANA)
        item = ledger.outbox.claim(f"bi/recover/{TABLE}", ALIVE, lease_seconds=60)
        assert item is not None
        assert item.key.startswith("c2/")
        assert ledger.outbox.record_paid(item, {"keys": 3}, ANA)
        assert [one.result for one in ledger.outbox.list()] == [{"absorbed_by": item.key}] * 2 + [{"keys": 3}]
        assert ledger.audit.verify().ok

    def test_an_item_of_another_partition_is_found_behind_many_that_wait(self, ledger: Ledger):
        """The queue is read page by page, as far as necessary."""
        run_in(ledger, S.VALIDATED)
        queue, owner = f"ml/watermark/{TABLE}", ALIVE
        ledger.outbox.owe("bf-1", "c", [Owed(Effect.WATERMARK, "published", "ml", ("a",))], ANA)
        first = ledger.outbox.claim(queue, owner, lease_seconds=60)
        assert first is not None
        ledger.outbox.record_failed(first, "down", ANA)
        blocked = [Owed(Effect.WATERMARK, f"published{n}", "ml", ("a",)) for n in range(230)]
        ledger.outbox.owe("bf-1", "c", [*blocked, Owed(Effect.WATERMARK, "rolled_back", "ml", ("b",))], ANA)
        assert ledger.outbox.next_due(queue) == 0
        found = ledger.outbox.claim(queue, owner, lease_seconds=60)
        assert found is not None
        assert found.partitions == ("b",)
        ledger.outbox.record_paid(found, {}, ANA)
        assert ledger.outbox.claim(queue, owner, lease_seconds=60) is None
        assert ledger.outbox.next_due(queue) is None

    def test_a_claim_whose_answer_was_lost_gets_the_same_item(self, ledger: Ledger):
        """Repeated by the same claim; another one waits for the lease."""
        run_in(ledger, S.VALIDATED)
        ledger.outbox.owe("bf-1", "c", [Owed(Effect.TELL, "published", "bi")], ANA)
        first = ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=60, is_dead=lambda _: False)
        again = ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=60, is_dead=lambda _: False)
        assert first == again
        other = ledger.outbox.claim("bi/tell", replace(ALIVE, name="w2"), lease_seconds=60, is_dead=lambda _: False)
        assert other is None

    def test_what_reads_the_acceptance_is_not_paid_twice_at_the_same_time(self, ledger: Ledger):
        """An older item that shares a partition waits until the newer one is over, wherever it is in the queue."""
        run_in(ledger, S.VALIDATED)
        queue = f"bi/recover/{TABLE}"
        many = [Owed(Effect.RECOVER, f"published{n}", "bi", ("a", f"d{n}")) for n in range(120)]
        ledger.outbox.owe("bf-1", "c", many, ANA)
        first = ledger.outbox.claim(queue, ALIVE, lease_seconds=60, is_dead=lambda _: False)
        assert first is not None
        other = replace(ALIVE, name="w2")
        assert ledger.outbox.claim(queue, other, lease_seconds=60, is_dead=lambda _: False) is None
        ledger.outbox.owe("bf-1", "late", [Owed(Effect.RECOVER, "published", "bi", ("a",))], ANA)
        assert ledger.outbox.claim(queue, other, lease_seconds=60, is_dead=lambda _: False) is None
        ledger.outbox.record_paid(first, {}, ANA)
        assert ledger.outbox.claim(queue, other, lease_seconds=60, is_dead=lambda _: False) is not None

    def test_a_failed_item_is_retried_or_waived_by_a_person(self, ledger: Ledger):
        """Waiving ends it for good; retrying gives it all attempts again."""
        run_in(ledger, S.VALIDATED)
        ledger.outbox.owe("bf-1", "c", [Owed(Effect.TELL, "published", "bi")], ANA)
        item = ledger.outbox.claim("bi/tell", ALIVE, lease_seconds=60)
        assert item is not None
        ledger.outbox.record_failed(item, "410 Gone", ANA)
        assert ledger.outbox.queues() == ()
        (again,) = ledger.outbox.retry([item.item_id], BO)
        assert (again.state, again.attempts, again.last_error) == (ItemState.OWED, 0, "410 Gone")
        (waived,), already = ledger.outbox.waive(item.item_id, "nobody reads it", BO)
        assert (waived.state, already) == (ItemState.WAIVED, False)
        assert (waived.waived_by, waived.waived_why) == ("bo", "nobody reads it")
        assert ledger.outbox.waive(item.item_id, "again", BO)[1]
        with pytest.raises(StateRefused, match="found waived"):
            ledger.outbox.retry([item.item_id], BO)
        assert actions(ledger, "bf-1")[-5:] == [
            "outbox.owed", "outbox.failed", "outbox.retried", "outbox.waived", "refused",
        ]  # fmt: skip
        assert ledger.audit.verify().ok

    def test_publications_of_a_partition_are_counted_over_all_runs(self, ledger: Ledger):
        """Versions are numbered by it; a rollback is not a publication, and what was abandoned counts for nothing."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1", DAYS[:2])
        roll_back(ledger, "bf-1", DAYS[:1])
        run_in(ledger, S.VALIDATED, "bf-2", DAYS[:1])
        settle(ledger, intend(ledger, "bf-2", DAYS[:1]), "abandoned")
        publish(ledger, "bf-2", DAYS[:1])
        assert ledger.partitions.count_publications(TABLE, DAYS) == {DAYS[0]: 2, DAYS[1]: 1}
        assert ledger.partitions.count_publications(TABLE, DAYS[1:]) == {DAYS[1]: 1}

    def test_a_rollback_opens_a_hazard_until_it_is_closed(self, ledger: Ledger):
        """Closing says why, once."""
        run_in(ledger, S.VALIDATED)
        publish(ledger, "bf-1")
        pub = roll_back(ledger, "bf-1", DAYS[:1])
        (hazard,) = ledger.guards.open_hazards(TABLE)
        assert (hazard.pub_id, hazard.snapshot_id) == (pub.pub_id, f"s-{pub.pub_id}")
        closed = ledger.guards.close_hazard(pub.pub_id, "rewritten", BO)
        assert ledger.guards.close_hazard(pub.pub_id, "again", BO) == closed
        assert ledger.guards.open_hazards() == ()
        assert actions(ledger).count("hazard.closed") == 1

    def test_the_guard_of_a_table_is_remembered(self, ledger: Ledger):
        """The last one recorded holds; the same again is not recorded."""
        assert ledger.guards.get("u-1") is None
        for snapshot in ("1", "1", "2"):
            ledger.guards.record("u-1", snapshot, ANA)
        assert ledger.guards.get("u-1") == "2"
        assert actions(ledger) == ["guard.recorded", "guard.recorded"]


class LedgerContract(RunContract, ChunkContract, CandidateContract, PublicationContract):
    """All of it."""
