"""Workers as Jobs of Kubernetes, through the user's ``kubectl``."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from errata.errors import EngineError, MissingDriver
from errata.model.cluster.declaration import KubernetesCluster
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder

_LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """One namespace. The id of a job is its token, which the Job and its pods have as a label."""

    declared: KubernetesCluster

    def locate(self) -> str:
        """See the port. Without a declared context it is the current one of kubectl; in a pod there may be none."""
        asked = ["config", "view", "-o", "jsonpath={.current-context}"]
        context = self.declared.context or self._run(asked, "current context").decode().strip()
        return f"namespace {self.declared.namespace}" + (f" of context {context}" if context else "")

    def check(self, release: str | None) -> None:  # noqa: ARG002 - the port has it
        """See the port. The image is part of every order; only whether the namespace answers is to be seen."""
        self._list("none")

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port. Two at once apply the same Job, which is one."""
        if known := self.find(order):
            return known
        self._run(["apply", "-f", "-"], f"start of {order.name}", json.dumps(order.request).encode())
        return self.read(order.token)

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        found = self._list(order.token)
        return self._describe(order.token, found[0]) if found else None

    def read(self, job_id: str) -> JobStatus:
        """See the port."""
        found = self._list(job_id)
        if not found:
            return JobStatus(job_id, JobState.STOPPED, "the namespace has no such Job any more")
        return self._describe(job_id, found[0])

    def stop(self, job_id: str) -> None:
        """See the port. The Job is there until its pod is gone; executors go with their driver."""
        how = ["--cascade=foreground", "--ignore-not-found", "--wait=false"]
        self._run(["delete", "job", "-l", f"errata-token={job_id}", *how], f"end of Job {job_id}")

    def _list(self, token: str) -> list[dict[str, Any]]:
        text = self._run(["get", "job", "-l", f"errata-token={token}", "-o", "json"], f"Job {token}")
        found: list[dict[str, Any]] = json.loads(text)["items"]
        return found

    def _describe(self, token: str, job: dict[str, Any]) -> JobStatus:
        status = job.get("status", {})
        is_deleted = "deletionTimestamp" in job["metadata"]  # its pod may still be running
        conditions = () if is_deleted else status.get("conditions", ())
        ended = {one["type"]: one for one in conditions if one.get("status") == "True"}
        state = JobState.RUNNING if status.get("active") or status.get("ready") else JobState.STARTING
        if "Complete" in ended:
            state = JobState.SUCCEEDED
        elif "Failed" in ended:
            state = JobState.FAILED
        detail = ended.get("Failed", {}).get("message", "")
        log = f"kubectl logs -n {self.declared.namespace} job/{job['metadata']['name']}"
        return JobStatus(token, state, detail, log)

    def _run(self, words: list[str], what: str, given: bytes = b"") -> bytes:
        program = shutil.which("kubectl")
        if program is None:
            raise MissingDriver(
                "kubectl is not in PATH, which starts workers on Kubernetes",
                state="nothing was started",
                hint="install kubectl; docs/guides/run-on-kubernetes.md",
            )
        context = ["--context", self.declared.context] if self.declared.context else []
        command = [program, *context, "-n", self.declared.namespace, *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=_LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise EngineError(f"{what}: kubectl did not end within {_LIMIT_SECONDS} s") from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise EngineError(f"{what}: kubectl answered: {said[-1] if said else done.returncode}")
        return done.stdout


_conforms: type[Cluster] = Kubernetes
