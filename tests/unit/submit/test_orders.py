"""What is started on each cluster: a Kubernetes Job by its schema, requests as reviewed, no secret in any of them."""

from __future__ import annotations

import doctest
import json
import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from errata.errors import Refused
from errata.model.cluster import cluster_seal, submission
from errata.model.cluster.declaration import AnyCluster, EmrCluster, KubernetesCluster, ServerlessCluster
from errata.model.cluster.declaration import StandaloneCluster as Standalone
from errata.model.cluster.submission import StartedWorker, Submission, build_token, name_worker
from errata.submit import driver_job
from errata.submit.orders import build_orders, count_starts, refuse_unreachable
from unit.submit import samples

GOLDENS = Path(__file__).parent / "goldens"
SECRETS = {"LEDGER_PASSWORD": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:ledger", "S3_SECRET_KEY": "s3"}
ROLE = "arn:aws:iam::111122223333:role/errata-worker"
CLUSTERS: dict[str, AnyCluster] = {
    "emr-serverless": ServerlessCluster(
        "00f1abcdexample", ROLE, "eu-central-1", "s3://finsight-jobs/errata", "emr-8.1.0", secrets=SECRETS
    ),
    "emr": EmrCluster(
        "eu-central-1", "s3://finsight-jobs/errata", "emr-8.1.0", "emr", "errata-worker", "m7g.xlarge", 4,
        yarn_queue="backfill", secrets=SECRETS,
    ),
    "kubernetes": KubernetesCluster("registry.example.com/errata@sha256:0a", "backfill", "errata", "below-live"),
    "standalone": Standalone("spark://spark.example.com:7077", "4.1"),
}  # fmt: skip


def order(target: str, cluster: AnyCluster | None = None) -> dict[str, Any]:
    name = name_worker(samples.RUN, 1, 1)
    worker = StartedWorker(name, build_token("ledger-1", name))
    given = Submission(1, target, 2, 8, 2, "2026-02-14T09:00:00Z", "there", (worker,))
    return dict(build_orders(samples.job(), cluster or CLUSTERS[target], given)[0].request)


@pytest.mark.parametrize("target", CLUSTERS)
def test_what_is_started_is_as_it_was_reviewed(target: str):
    """The whole request, as data."""
    text = json.dumps(order(target), indent=2, ensure_ascii=False) + "\n"
    golden = GOLDENS / f"start-{target}.json"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("target", CLUSTERS)
def test_no_order_contains_a_secret(target: str):
    """Values stay where they are; orders have names of secrets only."""
    assert samples.PASSWORD not in repr(order(target))
    assert samples.KEY not in repr(order(target))


def test_the_objects_of_kubernetes_follow_its_schema():
    """The Job, and the template of executors in it; a wrong field is found."""
    job = order("kubernetes")
    pod = job["spec"]["template"]
    template = json.loads(pod["metadata"]["annotations"]["errata-executor"])
    kubernetes_validate.validate(job, "1.33", strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job | {"spec": job["spec"] | {"parallel": 2}}, "1.33", strict=True)
    containers = [{"name": "spark", "image": "by-spark"}]  # what Spark adds to a template
    kubernetes_validate.validate(
        template | {"spec": template["spec"] | {"containers": containers}}, "1.33", strict=True
    )
    assert template["spec"] == {"priorityClassName": "below-live"}
    assert pod["spec"]["priorityClassName"] == "below-live"


def test_equal_submissions_give_equal_orders():
    """So that a process that goes on with one starts the same."""
    assert order("emr") == order("emr")


def test_on_emr_one_cluster_has_all_workers_as_its_steps():
    """Two workers, one start."""
    assert [count_starts(target, 2) for target in CLUSTERS] == [2, 1, 2, 2]
    assert len(order("emr")["Steps"]) == 2
    assert order("emr")["Instances"]["InstanceGroups"][1]["InstanceCount"] == 4


def test_a_variable_without_its_secret_is_refused():
    """Before anything is started, with the key that is missing."""
    bare = ServerlessCluster("00f1abcdexample", ROLE, "eu-central-1", "s3://jobs", "emr-8.1.0")
    with pytest.raises(Refused, match=r"takes LEDGER_PASSWORD, S3_SECRET_KEY from the environment"):
        order("emr-serverless", bare)


def test_a_ledger_in_a_file_is_refused_for_a_driver_elsewhere():
    """A standalone driver runs here and may."""
    local = samples.job(ledger="sqlite:////srv/ledger.db")
    with pytest.raises(Refused, match="another machine cannot see"):
        refuse_unreachable("emr", local)
    refuse_unreachable("standalone", local)


def test_examples_in_the_rules_are_true():
    """The doctests of the modules."""
    assert doctest.testmod(submission).failed == 0
    assert doctest.testmod(cluster_seal).failed == 0
    assert doctest.testmod(driver_job).failed == 0
