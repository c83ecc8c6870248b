"""Clusters keep the contract of the port: in memory, EMR and EMR Serverless on moto, kubectl on a stand-in, processes.

moto checks parameters against AWS's own service model, because botocore does; it knows no client token, so that only
the search by name is seen there. No cluster of Kubernetes and no account of AWS was ever asked.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from errata.engines.clusters.driver_processes import end_processes, list_processes
from errata.engines.clusters.emr import Emr
from errata.engines.clusters.emr_serverless import EmrServerless
from errata.engines.clusters.kubernetes import Kubernetes
from errata.engines.clusters.standalone import Standalone
from errata.errors import EngineError, MissingDriver, Refused
from errata.model.cluster.declaration import EmrCluster, KubernetesCluster, ServerlessCluster
from errata.model.cluster.submission import StartedWorker, Submission, build_token, name_worker
from errata.ports.clusters import JobState, WorkerOrder
from errata.submit.orders import build_orders
from errata.testing.contracts import ClusterContract, MemoryClusterSubject
from unit.submit import samples

REGION = "eu-central-1"
SECRETS = {name: f"arn:aws:secretsmanager:{REGION}:123456789012:secret:{name}" for name in samples.project().secrets}
EMR = EmrCluster(
    REGION, "s3://jobs/errata", "emr-7.9.0", "EMR_DefaultRole", "EMR_EC2_DefaultRole", "m5.xlarge", 4,
    logs="s3://jobs/logs", yarn_queue="backfill", secrets=SECRETS,
)  # fmt: skip
POD = KubernetesCluster("registry.example.com/errata@sha256:0a", "backfill", "errata", "below-live")
KUBECTL = """#!PYTHON
import json, pathlib, sys
place, words = pathlib.Path(__file__).parent / "jobs.json", sys.argv[1:]
known = json.loads(place.read_text()) if place.exists() else []
if "apply" in words:
    known.append(json.load(sys.stdin))
    place.with_name("count").open("a").write("x")
token = words[words.index("-l") + 1].partition("=")[2] if "-l" in words else ""
mine = [one for one in known if one["metadata"]["labels"]["errata-token"] == token]
if "config" in words:
    print("production", end="")
if "delete" in words:
    known = [one for one in known if one not in mine]
if "get" in words:
    print(json.dumps({"items": [{**one, "status": {"active": 1}} for one in mine]}))
place.write_text(json.dumps(known))
"""


def build_order(cluster: Any, target: str, n: int) -> WorkerOrder:
    """What a submission of two workers would start."""
    name = name_worker(samples.RUN, 1, n)
    worker = StartedWorker(name, build_token("ledger", name))
    at = datetime.now(UTC).isoformat()
    return build_orders(samples.job(), cluster, Submission(1, target, 2, 4, 2, at, "there", (worker,)))[0]


@dataclass
class AwsSubject:
    """A service of AWS in moto."""

    cluster: Any
    target: str

    def order(self, n: int) -> WorkerOrder:
        return build_order(self.cluster.declared, self.target, n)

    def count_started(self) -> int:
        if self.target == "emr":
            return len(self.cluster.client.list_clusters()["Clusters"])
        runs = self.cluster.client.list_job_runs(applicationId=self.cluster.declared.application_id)["jobRuns"]
        return len([run for run in runs if run["name"] != "live"])


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    # moto's job runs would have succeeded before they began
    monkeypatch.setattr("moto.emrserverless.models.JOB_STATUS", "RUNNING")
    with mock_aws():
        yield


def open_serverless() -> EmrServerless:
    client = boto3.client("emr-serverless", region_name=REGION)
    made = client.create_application(type="SPARK", releaseLabel="emr-7.9.0", clientToken="1", name="backfill")
    role = "arn:aws:iam::123456789012:role/errata"
    # moto does not find an application that never had a job run
    driver = {"sparkSubmit": {"entryPoint": "s3://jobs/live.py"}}
    client.start_job_run(
        applicationId=made["applicationId"], clientToken="2", executionRoleArn=role, name="live", jobDriver=driver
    )
    return EmrServerless(
        client,
        ServerlessCluster(made["applicationId"], role, REGION, "s3://jobs/errata", "emr-7.9.0", secrets=SECRETS),
    )


class TestInMemory(ClusterContract):
    """The fake that commands are tested with."""

    @pytest.fixture
    def cluster_subject(self) -> MemoryClusterSubject:
        return MemoryClusterSubject()


@pytest.mark.usefixtures("aws")
class TestEmr(ClusterContract):
    """Transient clusters of EMR, on moto."""

    @pytest.fixture
    def cluster_subject(self, aws: None) -> AwsSubject:
        return AwsSubject(Emr(boto3.client("emr", region_name=REGION), EMR), "emr")

    def test_the_cluster_is_what_was_sealed_and_ends_by_itself(self, cluster_subject: AwsSubject) -> None:
        """Release, steps, queue, secrets by name, and an end when all steps are done."""
        started = cluster_subject.cluster.start(cluster_subject.order(1))
        client = cluster_subject.cluster.client
        found = client.describe_cluster(ClusterId=started.job_id)["Cluster"]
        assert (found["ReleaseLabel"], found["AutoTerminate"]) == ("emr-7.9.0", True)
        steps = client.list_steps(ClusterId=started.job_id)["Steps"]
        assert len(steps) == 2
        assert "spark.yarn.queue=backfill" in steps[0]["Config"]["Args"]
        assert samples.PASSWORD not in repr(cluster_subject.order(1).request)
        assert started.log == f"s3://jobs/logs/{started.job_id}/"


@pytest.mark.usefixtures("aws")
class TestEmrServerless(ClusterContract):
    """Job runs of EMR Serverless, on moto."""

    @pytest.fixture
    def cluster_subject(self, aws: None) -> AwsSubject:
        return AwsSubject(open_serverless(), "emr-serverless")

    def test_an_application_with_another_release_is_refused(self, cluster_subject: AwsSubject) -> None:
        """The application is asked, not only errata.yaml."""
        cluster_subject.cluster.check("emr-7.9.0")
        with pytest.raises(Refused, match=r"seals release emr-8\.1\.0, the application has emr-7\.9\.0"):
            cluster_subject.cluster.check("emr-8.1.0")

    def test_every_start_has_its_token(self, cluster_subject: AwsSubject) -> None:
        """By which AWS recognises a second one; checked against the service model by botocore's stubber."""
        order, client = cluster_subject.order(1), boto3.client("emr-serverless", region_name=REGION)
        stub = Stubber(client)
        stub.add_response("list_job_runs", {"jobRuns": []})
        answer = {
            "applicationId": "app12345",
            "jobRunId": "run12345",
            "arn": f"arn:aws:emr-serverless:{REGION}:123456789012:/applications/app12345/jobruns/run12345",
        }
        stub.add_response("start_job_run", answer, dict(order.request))
        stub.add_client_error("get_job_run", "AccessDeniedException", "not you")
        declared = cluster_subject.cluster.declared
        with stub, pytest.raises(EngineError, match="AccessDeniedException: not you"):
            EmrServerless(client, declared).start(order)
        assert order.request["clientToken"] == order.token
        assert order.request["name"] == order.name


@dataclass
class KubectlSubject:
    """A stand-in for kubectl that keeps objects in a file."""

    directory: Path
    cluster: Kubernetes

    def order(self, n: int) -> WorkerOrder:
        return build_order(POD, "kubernetes", n)

    def count_started(self) -> int:
        place = self.directory / "count"
        return len(place.read_text()) if place.exists() else 0


class TestKubectl(ClusterContract):
    """Jobs through a stand-in for kubectl: the words that are sent, not what Kubernetes makes of them."""

    @pytest.fixture
    def cluster_subject(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KubectlSubject:
        program = tmp_path / "kubectl"
        program.write_text(KUBECTL.replace("PYTHON", sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return KubectlSubject(tmp_path, Kubernetes(POD))

    def test_a_repeated_start_starts_nothing(self, cluster_subject: Any) -> None:
        """A Job that was deleted is gone, so this holds while it is there; its number is never used again."""
        first = cluster_subject.cluster.start(cluster_subject.order(1))
        assert cluster_subject.cluster.start(cluster_subject.order(1)).job_id == first.job_id
        assert cluster_subject.count_started() == 1

    def test_another_context_is_another_place(self, cluster_subject: Any) -> None:
        """The current one counts if none is declared, so that a switch of contexts hides nothing that runs."""
        assert cluster_subject.cluster.locate() == "namespace backfill of context production"
        assert Kubernetes(replace(POD, context="test")).locate() == "namespace backfill of context test"

    def test_without_kubectl_nothing_is_started(self, cluster_subject: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """And the message says what is missing."""
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(MissingDriver, match="kubectl is not in PATH"):
            cluster_subject.cluster.start(cluster_subject.order(1))


@dataclass
class ProcessSubject:
    """Processes of this machine that wait."""

    cluster: Standalone

    def order(self, n: int) -> WorkerOrder:
        token = build_token(str(self.cluster.directory), f"worker {n}")
        return WorkerOrder(f"worker {n}", token, "2026-01-01T00:00:00+00:00", {"argv": ["sleep", "600"]})

    def count_started(self) -> int:
        return len(list(self.cluster.directory.glob("*.log")))


class TestProcesses(ClusterContract):
    """Drivers as processes, with a program that only waits in place of spark-submit."""

    @pytest.fixture
    def cluster_subject(self, tmp_path: Path) -> Iterator[ProcessSubject]:
        found = ProcessSubject(Standalone(tmp_path / "workers"))
        yield found
        for n in (1, 2):
            end_processes(found.order(n).token)

    def test_another_process_finds_it_without_a_record(self, cluster_subject: ProcessSubject) -> None:
        """By the token in its environment."""
        order = cluster_subject.order(1)
        Standalone(cluster_subject.cluster.directory).start(order)
        assert list_processes(order.token)
        found = cluster_subject.cluster.find(order)
        assert found is not None
        assert found.state is JobState.RUNNING

    def test_of_many_starters_at_once_one_starts(self, cluster_subject: ProcessSubject) -> None:
        """And to none of them it looks as if it had ended."""
        order = cluster_subject.order(1)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: Standalone(cluster_subject.cluster.directory).start(order), range(8)))
        assert [one.state for one in found] == [JobState.RUNNING] * 8
        shells = [pid for pid in list_processes(order.token) if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(shells) == 2, "the shell and its sleep"

    def test_killed_before_its_process_began_it_counts_as_ended(self, cluster_subject: ProcessSubject) -> None:
        """Its log is there and nobody has the lock: it is not started again under the same name."""
        order = cluster_subject.order(1)
        cluster_subject.cluster.directory.mkdir()
        (cluster_subject.cluster.directory / f"worker-{order.token}.log").touch()
        assert cluster_subject.cluster.start(order).state is JobState.STOPPED
        assert list_processes(order.token) == []

    def test_an_end_is_known_to_those_who_did_not_start_it(self, cluster_subject: ProcessSubject) -> None:
        """With its exit code, what it said last, and its log."""
        words = [sys.executable, "-c", "import sys; sys.exit('error: no master answers')"]
        order = replace(cluster_subject.order(1), request={"argv": words})
        status = cluster_subject.cluster.start(order)
        while not status.has_ended:
            status = Standalone(cluster_subject.cluster.directory).read(status.job_id)
        assert status.state is JobState.FAILED
        assert status.detail == "its driver ended with 1: error: no master answers"
        assert Path(status.log).read_text().startswith("error: no master answers")

    def test_another_version_of_spark_is_refused(self, cluster_subject: ProcessSubject) -> None:
        """The driver would run what is installed here."""
        directory = cluster_subject.cluster.directory
        Standalone(directory, "4.1.4").check("4.1")
        with pytest.raises(Refused, match=r"seals Spark 4\.0, this machine has 4\.1\.4"):
            Standalone(directory, "4.1.4").check("4.0")
        with pytest.raises(Refused, match=r"seals Spark 4\.1, this machine has none"):
            Standalone(directory).check("4.1")
