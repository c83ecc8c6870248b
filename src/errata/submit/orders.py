"""Build what is started on a cluster for a submission, in the form that the cluster's API takes. Pure.

Equal submissions give equal orders, so that a process that continues a submission of another one starts the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from errata.errors import Refused
from errata.model.cluster.declaration import (
    AnyCluster,
    EmrCluster,
    KubernetesCluster,
    ServerlessCluster,
    StandaloneCluster,
)
from errata.model.cluster.submission import StartedWorker, Submission
from errata.ports.clusters import WorkerOrder
from errata.submit.command import Placeholders
from errata.submit.driver_job import build_driver_job
from errata.submit.emr import build_job_run, build_step
from errata.submit.job import SubmitOptions, WorkerJob
from errata.submit.spark import build_standalone


def count_starts(target: str, workers: int) -> int:
    """How many things are started for this many workers: on EMR, one cluster has all of them as its steps."""
    return 1 if target == "emr" else workers


def name_orders(submission: Submission) -> tuple[WorkerOrder, ...]:
    """What finds and stops the workers of a submission, in their order; nothing can be started with it."""
    return tuple(WorkerOrder(one.name, one.token, submission.at, {}) for one in submission.started)


def build_orders(job: WorkerJob, cluster: AnyCluster, submission: Submission) -> tuple[WorkerOrder, ...]:
    """The orders of a submission, in the order of its workers."""
    sized = replace(job, cores=submission.cores)
    return tuple(
        replace(order, request=_build_request(sized, cluster, submission, one))
        for order, one in zip(name_orders(submission), submission.started, strict=True)
    )


def refuse_unreachable(target: str, job: WorkerJob) -> None:
    """Refuse a driver on another machine while ledger or catalogs are files of this one."""
    if target != "standalone" and job.only_here:
        raise Refused(
            f"--start {target} was refused; expected a ledger and catalogs in PostgreSQL or behind a server, found "
            f"{' and '.join(job.only_here)} in a SQLite file of this machine, which another machine cannot see",
            state="nothing was started; main is unchanged",
            hint=f"ledger: postgresql+psycopg://… in errata.yaml; docs/guides/run-on-{target}.md",
        )


def _build_request(
    job: WorkerJob, cluster: AnyCluster, submission: Submission, worker: StartedWorker
) -> Mapping[str, Any]:
    blanks = Placeholders()
    wishes = SubmitOptions(workers=1, parallel=submission.parallel)
    match cluster:
        case ServerlessCluster():
            _require_secrets("emr-serverless", job, cluster.secrets)
            wishes = replace(wishes, at=cluster.at, application_id=cluster.application_id, role_arn=cluster.role_arn)
            run = build_job_run(job, wishes, blanks, lambda name: cluster.secrets[name])
            return run | {"name": worker.name, "clientToken": worker.token}
        case EmrCluster():
            _require_secrets("emr", job, cluster.secrets)
            return build_job_flow(job, cluster, submission, worker)
        case KubernetesCluster():
            return build_driver_job(job, cluster, wishes, worker.name, worker.token)
        case StandaloneCluster():
            lines = build_standalone(job, replace(wishes, master=cluster.master), blanks, "client")
            return {"argv": [word for line in lines for word in line]}


def build_job_flow(
    job: WorkerJob, cluster: EmrCluster, submission: Submission, worker: StartedWorker
) -> dict[str, Any]:
    """A cluster of EMR for one submission: every worker is a step, and it ends when all steps have."""
    wishes = SubmitOptions(parallel=submission.parallel, at=cluster.at)
    step = build_step(
        job, wishes, Placeholders(), {"spark.yarn.queue": cluster.yarn_queue} if cluster.yarn_queue else None
    )
    cores = (job.cores or cluster.instance_cores) * submission.workers
    groups = [_build_group("MASTER", cluster, 1), _build_group("CORE", cluster, -(-cores // cluster.instance_cores))]
    variables = {f"EMR.secret@spark.yarn.appMasterEnv.{name}": cluster.secrets[name] for name in job.variables}
    defaults = [{"Classification": "spark-defaults", "Properties": variables}] if variables else []
    instances = {"InstanceGroups": groups, "KeepJobFlowAliveWhenNoSteps": False, "TerminationProtected": False}
    return {
        "Name": worker.name,
        "ReleaseLabel": cluster.release,
        "Applications": [{"Name": "Spark"}],
        "Instances": instances | ({"Ec2SubnetId": cluster.subnet} if cluster.subnet else {}),
        "ServiceRole": cluster.service_role,
        "JobFlowRole": cluster.instance_profile,
        "StepConcurrencyLevel": submission.workers,
        "Steps": [step | {"Name": f"{worker.name} worker {n}"} for n in range(1, submission.workers + 1)],
        "AutoTerminationPolicy": {"IdleTimeout": cluster.idle_seconds},
        "Configurations": defaults,
        "Tags": [{"Key": "errata-run", "Value": job.run_id}, {"Key": "errata-token", "Value": worker.token}],
        **({"LogUri": cluster.logs} if cluster.logs else {}),
    }


def _build_group(role: str, cluster: EmrCluster, count: int) -> dict[str, Any]:
    return {
        "Name": role.lower(), "InstanceRole": role, "InstanceType": cluster.instance_type, "InstanceCount": count,
        "Market": "ON_DEMAND",
    }  # fmt: skip


def _require_secrets(target: str, job: WorkerJob, known: Mapping[str, str]) -> None:
    missing = [name for name in job.variables if name not in known]
    if missing:
        raise Refused(
            f"--start {target} was refused; errata.yaml takes {', '.join(missing)} from the environment, and "
            f"clusters.{target}.secrets names no secret for {'it' if len(missing) == 1 else 'them'}",
            state="nothing was started; main is unchanged",
            hint=f"clusters: {{{target}: {{secrets: {{{missing[0]}: SECRET-ID}}}}}} in errata.yaml",
        )
