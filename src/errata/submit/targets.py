"""The supported kinds of clusters with their capabilities, and the command for each. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from errata.errors import Refused, UsageError
from errata.jars.lane import find_sealed_lane
from errata.submit.command import Command, Placeholders
from errata.submit.emr import build_emr, build_emr_serverless
from errata.submit.job import SubmitOptions, WorkerJob
from errata.submit.spark import build_kubernetes, build_standalone, build_yarn

Builder = Callable[[WorkerJob, SubmitOptions, Placeholders, str], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """One kind of cluster."""

    builder: Builder
    modes: tuple[str, ...]  # the first is the default
    waits: bool  # whether the command runs until the worker ends
    guide: str
    advice: tuple[str, ...] = ()  # ``{spark}`` is the Spark that the run was sealed for


TARGETS = {
    "emr-serverless": ClusterTarget(
        build_emr_serverless,
        ("cluster",),
        waits=False,
        guide="run-on-emr-serverless.md",
        advice=("the release of the application must have Spark {spark}",),
    ),
    "emr": ClusterTarget(
        build_emr,
        ("cluster",),
        waits=False,
        guide="run-on-emr.md",
        advice=(
            "the release of the cluster must have Spark {spark}",
            "steps run one after the other unless the cluster's step concurrency is as high as the workers",
        ),
    ),
    "kubernetes": ClusterTarget(build_kubernetes, ("cluster", "client"), waits=True, guide="run-on-kubernetes.md"),
    "yarn": ClusterTarget(build_yarn, ("cluster", "client"), waits=True, guide="run-on-yarn.md"),
    "standalone": ClusterTarget(build_standalone, ("client",), waits=True, guide="run-on-standalone.md"),
}


def build_command(target: str, job: WorkerJob, wishes: SubmitOptions) -> Command:
    """Build the command that starts the job's workers on this kind of cluster."""
    if target not in TARGETS:
        raise UsageError(f"target {target!r} was refused; expected one of {', '.join(TARGETS)}")
    chosen = TARGETS[target]
    mode = wishes.deploy_mode or chosen.modes[0]
    if mode not in chosen.modes:
        raise UsageError(f"--deploy-mode {mode} was refused; {target} takes {' or '.join(chosen.modes)}")
    if mode == "cluster" and job.only_here:
        _refuse_local_databases(target, chosen, job)
    blanks = Placeholders()
    lines = chosen.builder(job, wishes, blanks, mode)
    return Command(
        target=target,
        run_id=job.run_id,
        lines=lines,
        workers=wishes.workers,
        waits=chosen.waits,
        blanks=tuple(blanks.found.items()),
        variables=job.variables,
        jars=job.jars,
        notes=(*_list_notes(job, wishes, target, mode), *_list_advice(chosen, job)),
    )


def _refuse_local_databases(target: str, chosen: ClusterTarget, job: WorkerJob) -> None:
    client = " or --deploy-mode client, which starts the driver here;" if "client" in chosen.modes else ""
    raise Refused(
        f"a driver on {target} was refused; expected a ledger and catalogs in PostgreSQL or behind a server, found "
        f"{' and '.join(job.only_here)} in a SQLite file of this machine, which another machine cannot see",
        state="nothing was printed",
        hint=f"ledger: postgresql+psycopg://… in errata.yaml;{client} docs/guides/{chosen.guide}",
    )


def _list_advice(chosen: ClusterTarget, job: WorkerJob) -> tuple[str, ...]:
    """The advice of the target, with the Spark that the run was sealed for."""
    sealed = find_sealed_lane(jar.name for jar in job.jars)
    return tuple(text.format(spark=sealed[0] if sealed else "of the run manifest") for text in chosen.advice)


def _list_notes(job: WorkerJob, wishes: SubmitOptions, target: str, mode: str) -> list[str]:
    notes = [*_describe_state(job), _describe_cores(job, wishes)]
    names = ", ".join(job.variables)
    if job.variables and mode == "client":
        notes.append(f"set where this runs: {names}")
    elif job.variables and target in ("yarn", "emr"):
        notes.append(f"the shell fills in {names}; anyone who may see the application's settings can read them")
    elif job.variables and target == "kubernetes":
        notes.append(f"the Kubernetes secret `errata` has the keys {names}")
    for key, text in job.withheld.items():
        notes.append(f"left to errata.yaml, because it comes from the environment: {key}={text}")
    if job.only_here:
        notes.append(f"start every worker on this machine: {' and '.join(job.only_here)} in a SQLite file")
    notes += [f"every machine of the cluster must see {place} at this path" for place in job.paths_here]
    return notes


def _describe_state(job: WorkerJob) -> list[str]:
    if job.state in ("approved", "running", "paused"):
        return []
    reason = {
        "planned": "a worker is refused until somebody approves it",
        "failed": f"first: {job.next_command}",
    }.get(job.state, "a worker has nothing to do")
    return [f"the run is {job.state.replace('_', ' ')}: {reason}"]


def _describe_cores(job: WorkerJob, wishes: SubmitOptions) -> str:
    if job.cores is None:
        return "no cap on cores; throttle.cores in errata.yaml sets one"
    total = f", {wishes.workers} workers {job.cores * wishes.workers}" if wishes.workers > 1 else ""
    return f"a worker holds at most {job.cores} executor cores (throttle.cores){total}"
