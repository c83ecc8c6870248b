"""`errata submit --start` and `--stop`: start workers of a run on a cluster, follow them, and stop them.

The intent is recorded before anything is started and the outcome after it, so that the next command finds what is
running. What is started is never started twice: names and tokens follow from the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from errata.approval.permissions import require_role
from errata.commands.compute.worker_watch import WorkerWatch
from errata.commands.look.run_list import counts_view
from errata.commands.plan.other_runs import list_past_runs
from errata.commands.situation import hint_next_step
from errata.errors import Refused, StateRefused, UsageError
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.cluster.cluster_seal import require_sealed, seal_cluster
from errata.model.cluster.declaration import STARTABLE, AnyCluster
from errata.model.cluster.submission import StartedWorker, Submission
from errata.model.product import Role
from errata.model.run import ChunkState, RunState
from errata.planning.deadline import Budget, WorkerSize, parse_deadline, size_workers
from errata.planning.estimate import Work, compute_usd, count_worker_cores, derive_rates
from errata.ports.clusters import Cluster
from errata.submit.here import find_here
from errata.submit.job import WorkerJob, build_job
from errata.submit.orders import build_orders, count_starts, name_orders, refuse_unreachable
from errata.text.numbers import plural
from errata.views.run import StartedView, SubmitView
from errata.worker.budget import core_seconds
from errata.workspace import RunContext, Workspace

_WORKABLE = frozenset({RunState.APPROVED, RunState.RUNNING, RunState.PAUSED})


@hint_next_step
def start_workers(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    target: str,
    *,
    workers: int | None = None,
    parallel: int = 2,
    deadline: str | None = None,
    image: str | None = None,
) -> SubmitView:
    """Start workers on a cluster unless some are running, follow them until the run is computed, and stop them."""
    context = _open(workspace, actor, run_id)
    if target not in STARTABLE:
        raise UsageError(f"--start {target} was refused; expected one of {', '.join(STARTABLE)}")
    if workers is not None and deadline is not None:
        raise UsageError("--workers with --deadline was refused; the deadline decides how many workers there are")
    cluster = _require_cluster(context, target, image)
    job = _build_job(context)
    before = workspace.ledger.submissions.read_all(context.run_id)
    watch, size = _find_running(context, before, target, job, cluster), None
    if watch is None:
        refuse_unreachable(target, job)
        if not _can_work(context):
            return _refuse_or_report(context, target)
        workspace.engines.cluster(target).check(seal_cluster(target, cluster).release)
        size = _choose_size(context, workers, deadline)
        known, is_mine = _intend(context, len(before) + 1, target, size, parallel)
        size = size if is_mine else None
        watch = _join(context, known, target, job, cluster)
    if size is None:
        asked = workers is not None or deadline is not None
        told = f"; it is too late for {'--workers' if workers else '--deadline'}" if asked else ""
        many = plural(watch.submission.workers, "worker")
        workspace.narrate(f"following {many} that an earlier command started on {target}{told}")
    with watch.stopping_when_interrupted():
        watch.start()
        watch.follow()
        ended = watch.finish()
    return _build_view(context, ended, joined=size is None, size=size)


@hint_next_step
def stop_workers(workspace: Workspace, actor: Actor, run_id: str) -> SubmitView:
    """Stop everything that was started for a run and is not known to have ended."""
    context = _open(workspace, actor, run_id)
    submissions = workspace.ledger.submissions.read_all(context.run_id)
    if not submissions:
        raise StateRefused(
            f"submit --stop of {context.run_id} was refused; nothing was started for it",
            state="nothing was changed",
            run_id=context.run_id,
        )
    last = submissions[-1]
    if last.is_open:
        if workspace.project.clusters.find(last.target) is None:
            raise Refused(
                f"submit --stop of {context.run_id} was refused; its workers are on {last.target}, and errata.yaml "
                f"has no clusters.{last.target} any more",
                state="they may be running",
                hint="declare it again",
            )
        watch = WorkerWatch(context, last, name_orders(last), _open_cluster(context, last))
        watch.stop("stopped by a person")
        last = watch.submission
    return _build_view(context, last, joined=True)


def _open(workspace: Workspace, actor: Actor, run_id: str) -> RunContext:
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.OPERATOR,), "submit", run.run_id)
    return workspace.open_run(run.run_id, actor)


def _require_cluster(context: RunContext, target: str, image: str | None) -> AnyCluster:
    """The cluster of errata.yaml, if it and ``--image`` are what the plan sealed."""
    declared = context.workspace.project.clusters
    cluster = require_sealed(target, context.run_id, context.manifest.clusters, declared)
    if image is not None and image != cluster.image:
        raise Refused(
            f"--image {image} was refused; the plan seals image {cluster.image or 'none'}",
            state="nothing was started; main is unchanged",
            hint=f"leave out --image, or declare it as clusters.{target}.image and plan again",
        )
    return cluster


def _build_job(context: RunContext) -> WorkerJob:
    manifest = json.loads(context.ledger.runs.manifest_bytes(context.run_id))
    project = context.workspace.project
    return build_job(project, manifest, context.run_id, context.actor.person, find_here())


def _open_cluster(context: RunContext, submission: Submission) -> Cluster:
    """The cluster on which a submission is; refused where its workers can be neither seen nor stopped."""
    cluster = context.engines.cluster(submission.target)
    if (here := cluster.locate()) != submission.place:
        raise Refused(
            f"submit of {context.run_id} was refused; its workers were started at {submission.place} and may be "
            f"running; they can be neither seen nor stopped from {here}",
            state="nothing was changed",
            hint=f"repeat the command there, with clusters.{submission.target} of errata.yaml as it was; or compute "
            f"without them: errata run {context.run_id}",
        )
    return cluster


def _join(
    context: RunContext, submission: Submission, target: str, job: WorkerJob, declared: AnyCluster
) -> WorkerWatch:
    if submission.target != target:
        raise Refused(
            f"--start {target} was refused; workers of {context.run_id} were started on {submission.target} and may "
            "be running",
            state="nothing was started",
            hint=f"errata submit {context.run_id} --stop, or follow them: errata submit {context.run_id} --start "
            f"{submission.target}",
        )
    cluster = _open_cluster(context, submission)
    return WorkerWatch(context, submission, build_orders(job, declared, submission), cluster)


def _find_running(
    context: RunContext, submissions: Sequence[Submission], target: str, job: WorkerJob, declared: AnyCluster
) -> WorkerWatch | None:
    """The submission whose workers may be running; None if there is none, or if all of them have ended since."""
    if not submissions or not submissions[-1].is_open:
        return None
    watch = _join(context, submissions[-1], target, job, declared)
    with watch.stopping_when_interrupted():
        watch.look()
    return watch if watch.submission.is_open else None


def _can_work(context: RunContext) -> bool:
    """Whether a worker has something to do; a run that changes nothing needs no approval."""
    state = context.run.state
    return state in _WORKABLE or (state is RunState.PLANNED and not context.manifest.changes_table)


def _refuse_or_report(context: RunContext, target: str) -> SubmitView:
    """A run that is computed is no error: everything that was started for it has ended."""
    state, counts = context.run.state, context.ledger.progress.counts(context.run_id)
    if counts.total and counts.done == counts.total:
        submissions = context.ledger.submissions.read_all(context.run_id)
        nothing = Submission(0, target, 0, None, 0, "", "", ())
        return _build_view(context, submissions[-1] if submissions else nothing, joined=True)
    raise StateRefused(
        f"submit of {context.run_id} was refused; expected state approved, running or paused, found {state.value}",
        state="nothing was started; main is unchanged",
        run_id=context.run_id,
        found=state.value,
        expected=sorted(one.value for one in _WORKABLE),
    )


def _choose_size(context: RunContext, workers: int | None, deadline: str | None) -> WorkerSize:
    """The size that was asked for, or the one that meets the deadline of the command or of the plan."""
    workspace = context.workspace
    product = workspace.product(context.manifest.product)
    throttle = product.throttle or workspace.project.throttle
    if workers is not None:
        return WorkerSize(workers, throttle.cores)
    now = workspace.now()
    asked = deadline or _find_planned_deadline(context)
    if asked is None:
        return WorkerSize(1, throttle.cores)
    by = parse_deadline(asked, now)
    left = [one for one in context.ledger.progress.chunks(context.run_id) if one.state is not ChunkState.DONE]
    work = Work(
        sum(one.rows for one in left), sum(one.bytes for one in left), sum(len(one.partitions) for one in left),
        len(left), rows_known=all(pin.kind != "files" or pin.counts for pin in context.manifest.inputs),
    )  # fmt: skip
    each = count_worker_cores(workspace.project, product)
    attempts = context.ledger.progress.attempts(context.run_id)
    spent = compute_usd(workspace.project.core_hour_usd, core_seconds(attempts, each, context.ledger.now()))
    cap = None if context.manifest.has_override("cost") else context.manifest.limits.max_usd
    rates = derive_rates(list_past_runs(workspace, product))
    return size_workers(by, now, work, rates, each, throttle, Budget(cap, spent, workspace.project.core_hour_usd))


def _find_planned_deadline(context: RunContext) -> str | None:
    """The deadline that the plan was asked about, unless it has passed."""
    entries = context.ledger.audit.readable_entries(context.run_id, actions=("run.planned",))
    found = next((entry.body.get("deadline") for entry in entries), None)
    if found is None:
        return None
    try:
        parse_deadline(found, context.workspace.now())
    except UsageError:
        context.workspace.narrate(f"the deadline of the plan, {found}, has passed; starting one worker")
        return None
    return str(found)


def _intend(context: RunContext, n: int, target: str, size: WorkerSize, parallel: int) -> tuple[Submission, bool]:
    """Record what is about to start; if another process was faster, what that one recorded, and False.

    ``n`` comes from what was read before the workers of the last submission were looked for: a number from a later
    look would not collide with that of a process that started meanwhile, and both would start workers.
    """
    submissions = context.ledger.submissions
    told = {
        "target": target,
        "workers": size.workers,
        "cores": size.cores,
        "parallel": parallel,
        "starts": count_starts(target, size.workers),
        "at": context.ledger.now(),
        "place": context.engines.cluster(target).locate(),
        **({"deadline": size.deadline.by, "usd": size.deadline.usd} if size.deadline else {}),
    }
    is_mine = submissions.intend(context.run_id, n, told, context.actor)
    failpoint("submit.after_intent")
    if is_mine:
        each = f" of {plural(size.cores, 'core')}" if size.cores else ""
        context.workspace.narrate(f"starting {plural(size.workers, 'worker')}{each} on {target}")
    return submissions.read_all(context.run_id)[n - 1], is_mine


def _build_view(
    context: RunContext, submission: Submission, *, joined: bool, size: WorkerSize | None = None
) -> SubmitView:
    run = context.ledger.runs.get(context.run_id)
    counts = counts_view(context.ledger.progress.counts(context.run_id))
    return SubmitView(
        run_id=context.run_id,
        state=run.state.value,
        target=submission.target,
        submission=submission.n,
        workers=submission.workers,
        cores=submission.cores,
        joined=joined,
        chunks_done=counts.done,
        chunks=counts.total,
        started=tuple(_build_started(one) for one in submission.started),
        deadline=size.deadline if size else None,
    )


def _build_started(one: StartedWorker) -> StartedView:
    return StartedView(one.name, one.job_id, one.outcome, one.detail, one.log)
