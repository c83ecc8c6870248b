"""Workers as steps of a cluster of EMR that is started for them and ends with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from errata.engines.clusters.aws import translate_errors
from errata.model.cluster.declaration import EmrCluster
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder

_STATES = {
    "STARTING": JobState.STARTING,
    "BOOTSTRAPPING": JobState.STARTING,
    "RUNNING": JobState.RUNNING,
    "WAITING": JobState.RUNNING,
    "TERMINATING": JobState.RUNNING,  # it is still paid for
    "TERMINATED": JobState.STOPPED,
    "TERMINATED_WITH_ERRORS": JobState.FAILED,
}
_SLACK = timedelta(days=1)
"""How far the search goes back before the intent; names are unique, so this only bounds it."""


@dataclass(frozen=True, slots=True)
class Emr:
    """Clusters of EMR, asked through ``client``."""

    client: Any
    declared: EmrCluster

    def locate(self) -> str:
        """See the port."""
        return f"region {self.declared.region}"

    def check(self, release: str | None) -> None:  # noqa: ARG002 - the port has it
        """See the port. The sealed release is the one that is started; only whether EMR answers is to be seen."""
        with translate_errors(f"EMR in {self.locate()}"):
            self.client.list_clusters(ClusterStates=["STARTING"])

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port. EMR has no token for this call, so the name of the cluster is looked for first."""
        if known := self.find(order):
            return known
        with translate_errors(f"start of {order.name}"):
            answer = self.client.run_job_flow(**order.request)
        return self.read(answer["JobFlowId"])

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        since = datetime.fromisoformat(order.since) - _SLACK
        pages = self.client.get_paginator("list_clusters").paginate(CreatedAfter=since)
        with translate_errors(f"search for {order.name}"):
            known = next((one for page in pages for one in page["Clusters"] if one["Name"] == order.name), None)
        return None if known is None else self.read(known["Id"])

    def read(self, job_id: str) -> JobStatus:
        """See the port."""
        with translate_errors(f"cluster {job_id}"):
            found = self.client.describe_cluster(ClusterId=job_id)["Cluster"]
            status, reason = found["Status"], found["Status"].get("StateChangeReason", {})
            failed = [] if status["State"] == "STARTING" else self._list_failed(job_id)
        state = _STATES.get(status["State"], JobState.RUNNING)
        if state is JobState.STOPPED and reason.get("Code") in ("ALL_STEPS_COMPLETED", "STEP_FAILURE"):
            state = JobState.FAILED if failed else JobState.SUCCEEDED
        log = f"{found['LogUri'].rstrip('/')}/{job_id}/" if found.get("LogUri") else ""
        return JobStatus(job_id, state, "; ".join([*failed, *filter(None, [reason.get("Message")])]), log)

    def _list_failed(self, job_id: str) -> list[str]:
        steps = self.client.list_steps(ClusterId=job_id, StepStates=["FAILED"])["Steps"]
        return [f"step {one['Name']} failed" for one in steps]

    def stop(self, job_id: str) -> None:
        """See the port."""
        with translate_errors(f"end of cluster {job_id}"):
            self.client.terminate_job_flows(JobFlowIds=[job_id])


_conforms: type[Cluster] = Emr
