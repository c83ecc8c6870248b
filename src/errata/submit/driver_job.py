"""Build the Kubernetes Job of one worker, whose pod is the driver. Pure.

No operator is needed. Executors belong to the driver's pod, so that Kubernetes removes them with it. Their template is
an annotation of that pod, which it reads as a file: there is no second object that somebody would have to remove.
"""

from __future__ import annotations

import json
from typing import Any

from errata.model.cluster.declaration import KubernetesCluster
from errata.submit.job import SubmitOptions, WorkerJob
from errata.submit.paths import locate_in_image
from errata.submit.spark import IMAGE_ROOT, build_settings, build_submit_lines

_API = "k8s://https://kubernetes.default.svc"
_TEMPLATE = "/opt/spark/errata-executor"
_ANNOTATION = "errata-executor"
_PORT = 7078
_LONGEST = 52
"""Most characters of a Job's name, of which Kubernetes makes the names of pods."""


def name_job(name: str, token: str) -> str:
    """A name that Kubernetes takes.

    >>> name_job("errata-bf-1-1-1", "0a1b2c"), name_job("errata-" + "x" * 60, "0123456789abcdef0123")
    ('errata-bf-1-1-1', 'errata-0123456789abcdef')
    """
    return name if len(name) <= _LONGEST else f"errata-{token[:16]}"


def build_driver_job(
    job: WorkerJob, cluster: KubernetesCluster, wishes: SubmitOptions, name: str, token: str
) -> dict[str, Any]:
    """The Job of one worker, for ``kubectl apply``."""
    labels = _build_labels(job, token)
    priority = {"priorityClassName": cluster.priority_class} if cluster.priority_class else {}
    executor = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": priority}
    template = {"path": "pod.json", "fieldRef": {"fieldPath": f"metadata.annotations['{_ANNOTATION}']"}}
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": cluster.service_account,
        **priority,
        "containers": [_build_container(job, cluster, wishes, token)],
        "volumes": [{"name": "executor", "downwardAPI": {"items": [template]}}],
    }
    work = {
        "backoffLimit": 2,
        "ttlSecondsAfterFinished": 86_400,
        "template": {
            "metadata": {"labels": labels, "annotations": {_ANNOTATION: json.dumps(executor, sort_keys=True)}},
            "spec": pod,
        },
    }
    meta = {"name": name_job(name, token), "namespace": cluster.namespace, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": work}


def _build_labels(job: WorkerJob, token: str) -> dict[str, str]:
    return {"errata-run": job.run_id[:63].rstrip("-._"), "errata-token": token}


def _build_container(job: WorkerJob, cluster: KubernetesCluster, wishes: SubmitOptions, token: str) -> dict[str, Any]:
    places = locate_in_image(job, IMAGE_ROOT)
    own = {
        "spark.kubernetes.container.image": cluster.image,
        "spark.kubernetes.namespace": cluster.namespace,
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",
        "spark.kubernetes.executor.podTemplateFile": f"{_TEMPLATE}/pod.json",
        "spark.driver.host": "$(POD_IP)",
        "spark.driver.port": str(_PORT),
    }
    own |= {f"spark.kubernetes.executor.label.{key}": value for key, value in _build_labels(job, token).items()}
    conf = build_settings(job, places, "kubernetes", own)
    words = [word for line in build_submit_lines(job, wishes, places, conf) for word in line]
    known = [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    secret = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "errata", "key": name}}}
        for name in (job.variables if cluster.secrets else ())
    ]
    return {
        "name": "driver",
        "image": cluster.image,
        "command": ["spark-submit", "--master", _API, "--deploy-mode", "client"],
        "args": words,
        "env": [*known, *secret],
        "ports": [{"containerPort": _PORT}],
        "volumeMounts": [{"name": "executor", "mountPath": _TEMPLATE, "readOnly": True}],
    }
