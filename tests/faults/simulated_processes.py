"""Workers, validators and publishers for the simulation: generators that yield at each request they make.

The rules are the product's: the ledger's own methods, ``carry_out`` and ``settle`` of the publisher, the log of intents
of the executor, and the fates of lost chunks. Code of the product that is no generator is **replayed**: it is called
again from its start with the answers it got so far, until it asks for something that was not asked before. So it stops
at each request like everything else, without threads, and a process that dies simply is not continued.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from errata.errors import (
    ApprovalRefused,
    AttemptLost,
    EngineError,
    ErrataError,
    LedgerUnavailable,
    PublishConflict,
    PublishHeld,
    RunExpired,
    ScopeLocked,
    StateRefused,
)
from errata.ledger import Owner, PartitionState
from errata.model.audit import Actor
from errata.model.manifest import ExpectedFile
from errata.model.refs import pre_tag, undo_branch
from errata.model.run import ChunkState, PublicationState, RunState
from errata.model.table import group_by_partition
from errata.model.waves import OUT, WaveState, derive_run_state
from errata.publishing.readers.ready_table import write_ready_table
from errata.publishing.recovery import LedgerLog
from errata.publishing.replacement import Replacement, commit_replacement
from errata.publishing.unrecorded import close_intent
from errata.worker.chunk_failures import error_policy, loss_policy
from faults.simulated_ready import READY, ReadyBy
from faults.simulated_table import PIN, TABLE, Client

if TYPE_CHECKING:
    from faults.simulation import World

LEASE = 60.0
CAP = 6
BO = Actor("bo", "bo-os", "workspace")


@dataclass(frozen=True, slots=True)
class Request:
    """Something outside the process; ``do`` has its effect and answers. A commit says which refs it relies on."""

    name: str
    do: Callable[[], Any]
    relied_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sleep:
    """Nothing to do for a while."""

    seconds: float


Steps = Generator[Request | Sleep, Any, Any]


@dataclass
class Process:
    """One process on one of two hosts; who is on the same host sees that it died."""

    name: str
    host: str
    kind: str
    run_id: str
    steps: Steps | None = None
    waiting: Request | Sleep | None = None
    not_before: int = 0
    is_dead: bool = False
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        self.owner = Owner(self.name, self.host, 1, self.name)


class _NotAsked(BaseException):
    def __init__(self, request: Request) -> None:
        super().__init__(request.name)
        self.request = request


def replayed(work: Callable[[Callable[..., Any]], Any]) -> Steps:
    """Run ``work`` of the product up to its next request, again and again."""
    answers: list[tuple[Any, Exception | None]] = []
    while True:
        known = iter(answers)

        def io(name: str, do: Callable[[], Any], relied_on: tuple[str, ...] = (), known: Any = known) -> Any:
            answer, error = next(known, (None, _NotAsked(Request(name, do, relied_on))))
            if error is not None:
                raise error.with_traceback(None)
            return answer

        try:
            return work(io)
        except _NotAsked as asks:
            request = asks.request
        try:
            answers.append(((yield request), None))
        except Exception as error:  # noqa: BLE001  it is the product's to deal with
            answers.append((None, error))


@dataclass(frozen=True, slots=True)
class _LedgerBy:
    """A ledger, or one of its stores, whose every call is a step that may be cut off."""

    io: Callable[..., Any]
    ledger: Any
    name: str = "ledger"

    def read_together(self, work: Callable[[], Any]) -> Any:
        """Each read is a step; what is written from them is one table, which is read in one."""
        return work()

    def __getattr__(self, name: str) -> Any:
        found, called = getattr(self.ledger, name), f"{self.name}.{name}"
        if not callable(found):
            return _LedgerBy(self.io, found, called)
        return lambda *args, **options: self.io(called, partial(found, *args, **options))


def _open(world: World, io: Callable[..., Any]) -> Any:
    """As much of a workspace as the code of the product uses that is replayed here."""
    project = SimpleNamespace(
        evidence=SimpleNamespace(heads=None),
        ready=READY if world.is_held else None,
        consumers={},
        find_product=lambda _: None,
    )
    return SimpleNamespace(
        ledger=_LedgerBy(io, world.ledger),
        project=project,
        engines=SimpleNamespace(ready=ReadyBy(io, world.catalog.ready)),
        narrate=lambda _: world.count("lost publication recorded"),
    )


def _log(world: World, io: Callable[..., Any], run_id: str, kind: str, scope: Any, release: Any) -> LedgerLog:
    return LedgerLog(_open(world, io), BO, run_id, kind, TABLE, tuple(scope), "because", release)


def ask(world: World, name: str, *args: Any, **options: Any) -> Request:
    """A call of the ledger."""
    return Request(f"ledger.{name}", partial(attrgetter(name)(world.ledger), *args, **options))


def worker(world: World, me: Process) -> Steps:
    """Claim, stage, adopt, until nothing is left; then say what the run has come to."""
    run = yield ask(world, "runs.get", me.run_id)
    if run.state is RunState.APPROVED:
        try:
            yield ask(world, "runs.move", me.run_id, RunState.RUNNING, actor=BO, expect={RunState.APPROVED})
        except StateRefused:
            pass
    claim = partial(
        ask, world, "chunks.claim", me.run_id, me.owner, lease_seconds=LEASE, actor=BO, after_loss=loss_policy(CAP)
    )
    while True:
        attempt = yield claim(is_dead=lambda owner: world.sees_dead(me, owner))
        if attempt is not None:
            yield from _attempt(world, attempt)
            continue
        run = yield ask(world, "runs.get", me.run_id)
        counts = yield ask(world, "progress.counts", me.run_id)
        if run.state is not RunState.RUNNING or not (counts.pending or counts.running):
            break
        yield Sleep(LEASE / 4)
    try:
        if run.state is RunState.RUNNING and counts.done == counts.total:
            to = RunState.STAGED
            if world.is_waved:
                waves = yield ask(world, "waves.list", me.run_id)
                to = RunState.STAGED if len(waves) == 1 else derive_run_state([wave.state for wave in waves])
            yield ask(world, "runs.move", me.run_id, to, actor=BO, expect={RunState.RUNNING})
        elif run.state is RunState.RUNNING:
            yield ask(world, "runs.move", me.run_id, RunState.FAILED, actor=BO)
    except StateRefused:
        pass  # another worker said so first


def _attempt(world: World, attempt: Any) -> Steps:
    try:
        if not (yield ask(world, "chunks.heartbeat", attempt, LEASE)):
            return
        stage = partial(world.catalog.stage, attempt.attempt_id, attempt.partitions, attempt.run_id)
        snapshot = yield Request("table.stage", stage)
        if not (yield ask(world, "chunks.heartbeat", attempt, LEASE)):
            return
        facts = {"rows": len(attempt.partitions), "files": len(attempt.partitions), "bytes": 1, "seconds": 1.0}
        adopt = ask(world, "chunks.adopt", attempt, snapshot_id=snapshot, actor=BO, **facts)
        try:
            yield adopt
        except LedgerUnavailable:
            yield adopt  # its answer may have been lost
    except AttemptLost:
        return
    except RuntimeError as error:
        told = EngineError(str(error), retryable=True)
        fate = error_policy(told, CAP)
        try:
            yield ask(world, "chunks.fail", attempt, error_code=told.code, message=str(error), actor=BO, fate=fate)
        except AttemptLost:
            return


def operator(world: World, me: Process) -> Steps:
    """Puts back in line what failed."""
    yield ask(world, "outcomes.retry", me.run_id, None, BO)
    try:
        yield ask(world, "runs.move", me.run_id, RunState.RUNNING, actor=BO, expect={RunState.FAILED})
    except StateRefused:
        pass


def validator(world: World, me: Process) -> Steps:
    """A candidate of what was adopted, and a verdict over it; of waves, one for each that waits for it."""
    if not world.is_waved:
        yield from _judge(world, me, None)
        return
    for wave in (yield ask(world, "waves.list", me.run_id)):
        if wave.state is WaveState.STAGED:
            yield from _judge(world, me, wave.partitions)


def _judge(world: World, me: Process, partitions: tuple[str, ...] | None) -> Steps:
    chunks = yield ask(world, "progress.chunks", me.run_id)
    mine = [one for one in chunks if partitions is None or set(one.partitions) <= set(partitions)]
    staged = [chunk.snapshot_id for chunk in mine if chunk.state is ChunkState.DONE]
    digest = hashlib.sha256(repr(sorted(staged)).encode()).hexdigest()
    detail = {} if partitions is None else {"detail": {"rows": dict.fromkeys(partitions, 1)}}
    try:
        made = yield ask(world, "candidates.intend", me.run_id, digest, BO, *detail.values())
        snapshot = yield Request("table.assemble", partial(world.catalog.assemble, made.branch, staged))
        yield ask(world, "candidates.record", me.run_id, made.n, None, snapshot, BO)
        yield ask(
            world,
            "candidates.record_verdict",
            me.run_id,
            made.n,
            passed=True,
            checks=[],
            thresholds_digest="t" * 64,
            actor=BO,
        )
    except (StateRefused, RuntimeError):
        pass  # others were faster, or the next validator begins again


def publisher(world: World, me: Process) -> Steps:
    """Publish what is left of the run, a part of it or all; ends when only a person can go on."""
    while True:
        yield from _settle_deserted(world, me)
        states = yield ask(world, "partitions.states", me.run_id)
        left = tuple(name for name, state in states.items() if state is PartitionState.UNPUBLISHED)
        wave = None
        if world.is_waved:
            waves = yield ask(world, "waves.list", me.run_id)
            wave = next((one for one in waves if one.state not in OUT), None)
            if wave is None or wave.state not in (WaveState.VALIDATED, WaveState.PART_PUBLISHED):
                return
            left = tuple(name for name in left if name in wave.partitions)
        verdict = yield ask(world, "candidates.latest_verdict", me.run_id, *([wave.partitions] if wave else []))
        run = yield ask(world, "runs.get", me.run_id)
        if run.state in (RunState.ROLLED_BACK, RunState.SUPERSEDED, RunState.PUBLISHED) or not left:
            return
        scope = left if world.chance.random() < 0.7 else left[: world.chance.randint(1, len(left))]
        candidates = yield ask(world, "candidates.list", me.run_id)
        branch = next(one.branch for one in candidates if one.n == verdict.candidate_n)
        if branch not in world.catalog.refs:
            # which is what people are told to do: it is assembled again
            yield from _judge(world, me, wave.partitions if wave else None)
            continue
        order = _publication(world, run, branch, scope)
        release: dict[str, Any] = {"verdict": verdict.audit_seq, "candidate": verdict.candidate_n}
        if wave is not None and len(waves) > 1:
            release["wave"] = {"n": [wave.n], "of": len(waves), "pause": "0s", "pause_seconds": 0}
        if (yield from _tried(world, me, order, release)):
            continue
        return


def rollback(world: World, me: Process) -> Steps:
    """Take back what of the run is the truth now."""
    yield from _settle_deserted(world, me)
    states = yield ask(world, "partitions.states", me.run_id)
    scope = tuple(name for name, state in states.items() if state is PartitionState.ACCEPTED)
    if scope:
        run = yield ask(world, "runs.get", me.run_id)
        order = yield from _undo(world, run, scope)
        yield from _tried(world, me, order, {})


def visitor(world: World, me: Process) -> Steps:
    """Any other command: it begins by settling what nobody works on any more."""
    yield from _settle_deserted(world, me)


def payer(world: World, _me: Process) -> Steps:
    """Lets the ready table say what the ledger says, as who pays what is owed does."""
    yield from replayed(lambda io: write_ready_table(_open(world, io), (TABLE,)))


def _tried(world: World, me: Process, order: Replacement, release: dict[str, Any]) -> Steps:
    """One publication or rollback; whether it makes sense to come back."""
    try:
        yield from replayed(
            lambda io: commit_replacement(
                order,
                Client(world.catalog, io),
                Client(world.catalog, io),
                _log(world, io, me.run_id, order.kind, order.partitions, release),
            )
        )
    except PublishConflict as conflict:
        # a person must look: others wrote, or the table is no longer the one that was planned
        if "partitions" in conflict.fields or "changed after planning" in conflict.message:
            world.conflicts.add(me.run_id)
            return False
    except (ScopeLocked, ApprovalRefused, PublishHeld):
        yield Sleep(LEASE)
    except StateRefused:
        return False  # settled meanwhile by someone else
    return True


def _settle_deserted(world: World, me: Process) -> Steps:
    now = yield ask(world, "now_ms")
    for open_ in (yield ask(world, "publications.list_open", TABLE)):
        holder = world.holders.get(open_.pub_id)
        deserted = open_.lease_until <= now or holder is me
        if not deserted and holder is not None and not world.sees_dead(me, holder.owner):
            continue
        try:
            yield from replayed(
                lambda io, pub=open_: close_intent(
                    PIN,
                    pub.pub_id,
                    pub.partitions,
                    Client(world.catalog, io),
                    _log(world, io, pub.run_id, pub.kind, pub.partitions, {}),
                    reason="its process ended",
                )
            )
        except ErrataError:
            continue  # the next one looks again


def _publication(world: World, run: Any, branch: str, scope: tuple[str, ...]) -> Replacement:
    snapshot = world.catalog.snapshots[world.catalog.refs[branch]]
    files = {
        name: tuple(
            ExpectedFile(path, len(f.rows), "data") for path, f in snapshot.files.items() if f.partition == name
        )
        for name in scope
    }
    planned = world.plans[run.run_id]
    return Replacement(
        "publish", run.run_id, run.product, run.manifest_digest, PIN, scope,
        {name: planned.expected[name] for name in scope}, planned.base, files, (snapshot.id,), 30, {branch: 7},
        ("d", "row"),
    )  # fmt: skip


def _undo(world: World, run: Any, scope: tuple[str, ...]) -> Steps:
    """As the executor does it: what each partition held before the publication that brought its content in."""
    accepted = yield ask(world, "partitions.accepted", TABLE, scope)
    expected: dict[str, Any] = {}
    add: dict[str, Any] = {}
    refs, sources, rewrite = world.catalog.refs, list[str](), dict[str, tuple[str, ...]]()
    by_publication: dict[str, list[str]] = {}
    for name in scope:
        by_publication.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    publications = []
    for pub_id, names in by_publication.items():
        detail = yield ask(world, "publications.detail", pub_id)
        publications.append((yield ask(world, "publications.get", pub_id)))
        anew = tuple(name for name in names if name in detail["with_deletes"])
        whole = [name for name in names if name not in anew]
        if (whole and undo_branch(pub_id) not in refs) or (anew and pre_tag(pub_id) not in refs):
            raise RunExpired(f"what {pub_id} took out is not kept any more")
        for into, listed, of in ((expected, detail["add"], names), (add, detail["remove"], whole)):
            into |= {name: tuple(ExpectedFile(p, n, kind) for kind, p, n in listed.get(name, ())) for name in of}
        sources += [refs[undo_branch(pub_id)]] if whole else []
        rewrite |= {refs[pre_tag(pub_id)]: anew} if anew else {}
    own = set()
    for known in world.plans:
        found = yield ask(world, "publications.list", known)
        own |= {one.pub_id for one in found if one.state is PublicationState.COMMITTED}
    branches = [name for pub_id in by_publication if (name := undo_branch(pub_id)) in refs]
    return Replacement(
        "rollback", run.run_id, run.product, run.manifest_digest, PIN, scope, expected,
        min(publications, key=lambda one: one.settled_at or "").result_snapshot_id, add,
        tuple(sources), 30, dict.fromkeys(branches, 30), ("d", "row"),
        own=frozenset(own), rewrite=rewrite, marks=tuple(refs[name] for name in branches),
        rebased={name: one.result_snapshot_id for one in publications for name in by_publication[one.pub_id]},
    )  # fmt: skip


def planned_files(world: World, partitions: tuple[str, ...]) -> Any:
    """What a plan made now expects of these partitions."""
    return group_by_partition(world.catalog.version().live(partitions), partitions)
