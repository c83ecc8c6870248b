"""Workers as job runs of an application of EMR Serverless."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from errata.engines.clusters.aws import translate_errors
from errata.errors import Refused
from errata.model.cluster.declaration import ServerlessCluster
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder

_STATES = {
    "SUBMITTED": JobState.STARTING,
    "PENDING": JobState.STARTING,
    "SCHEDULED": JobState.STARTING,
    "QUEUED": JobState.STARTING,
    "RUNNING": JobState.RUNNING,
    "SUCCESS": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    # it still uses workers while it is being cancelled
    "CANCELLING": JobState.RUNNING,
    "CANCELLED": JobState.STOPPED,
}
_SLACK = timedelta(days=1)
"""How far the search goes back before the intent; names are unique, so this only bounds it."""


@dataclass(frozen=True, slots=True)
class EmrServerless:
    """One application, asked through ``client``."""

    client: Any
    declared: ServerlessCluster

    def locate(self) -> str:
        """See the port."""
        return f"application {self.declared.application_id} in region {self.declared.region}"

    def check(self, release: str | None) -> None:
        """See the port."""
        with translate_errors(f"application {self.declared.application_id}"):
            found = self.client.get_application(applicationId=self.declared.application_id)["application"]
        if found["releaseLabel"] != release:
            raise Refused(
                f"application {self.declared.application_id} was refused; the plan seals release {release}, "
                f"the application has {found['releaseLabel']}",
                state="nothing was started; main is unchanged",
                hint="use an application with that release, or declare its release and plan again",
            )

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port.

        The name finds a job run that was started long ago; the client token decides between two calls at once.
        """
        if known := self.find(order):
            return known
        with translate_errors(f"start of {order.name}"):
            answer = self.client.start_job_run(**order.request)
        return self.read(answer["jobRunId"])

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        pages = self.client.get_paginator("list_job_runs").paginate(
            applicationId=self.declared.application_id, createdAtAfter=datetime.fromisoformat(order.since) - _SLACK
        )
        with translate_errors(f"search for {order.name}"):
            known = next((run for page in pages for run in page["jobRuns"] if run.get("name") == order.name), None)
        return None if known is None else self.read(known["id"])

    def read(self, job_id: str) -> JobStatus:
        """See the port."""
        with translate_errors(f"job run {job_id}"):
            try:
                run = self.client.get_job_run(applicationId=self.declared.application_id, jobRunId=job_id)["jobRun"]
            except self.client.exceptions.ResourceNotFoundException:
                return JobStatus(job_id, JobState.STOPPED, "EMR Serverless does not know it any more")
        log = f"aws emr-serverless get-dashboard-for-job-run --job-run-id {job_id}"
        log += f" --application-id {self.declared.application_id} --region {self.declared.region}"
        return JobStatus(job_id, _STATES.get(run["state"], JobState.RUNNING), run.get("stateDetails") or "", log)

    def stop(self, job_id: str) -> None:
        """See the port."""
        if self.read(job_id).has_ended:
            return
        with translate_errors(f"end of job run {job_id}"):
            self.client.cancel_job_run(applicationId=self.declared.application_id, jobRunId=job_id)


_conforms: type[Cluster] = EmrServerless
