"""Build ``spark-submit`` for standalone clusters, YARN and Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.model.product.cluster import build_core_settings, classify_master
from errata.submit.command import Placeholders
from errata.submit.job import SubmitOptions, WorkerJob
from errata.submit.paths import SubmitPaths, locate_archives, locate_in_image, locate_locally

CommandLines = tuple[tuple[str, ...], ...]
IMAGE_ROOT = "/opt/errata"
_MAX_LABEL = 63
_REDACTION_REGEX = "(?i)secret|password|token|access[.]?key|appMasterEnv"
"""Spark's default expression plus the variables passed to YARN as settings, so that the Spark UI hides them."""


def build_standalone(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, _mode: str) -> CommandLines:
    """The driver runs on this machine, because a standalone cluster does not run Python drivers."""
    master = _choose_master(job, wishes, blanks, "standalone", "spark://host:7077", "the standalone master")
    places = locate_locally(job, wishes)
    return _build_spark_submit(job, wishes, places, master, "client", build_settings(job, places, "standalone"))


def build_yarn(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, mode: str) -> CommandLines:
    """The driver runs in the application master, or on this machine in client mode."""
    tags = {"spark.yarn.tags": f"errata,{job.run_id}"}
    if mode == "client":
        places = locate_locally(job, wishes)
        return _build_spark_submit(job, wishes, places, "yarn", mode, build_settings(job, places, "yarn", tags))
    places = locate_archives(job, wishes, blanks, wishes.at)
    return _build_spark_submit(
        job, wishes, places, "yarn", mode, build_settings(job, places, "yarn", tags | build_yarn_env(job))
    )


def build_yarn_env(job: WorkerJob) -> dict[str, str]:
    """The project's variables for the driver in the application master, as references that the shell fills in."""
    found = {f"spark.yarn.appMasterEnv.{name}": f"${{{name}}}" for name in job.variables}
    return found | ({"spark.redaction.regex": _REDACTION_REGEX} if found else {})


def build_kubernetes(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, mode: str) -> CommandLines:
    """The driver runs in a pod, with everything in its image or in archives, or on this machine in client mode."""
    master = _choose_master(job, wishes, blanks, "kubernetes", "k8s://https://host:6443", "the API server")
    label = job.run_id[:_MAX_LABEL].rstrip("-._")
    own = {
        "spark.kubernetes.container.image": blanks.fill(wishes.image, "image", "the container image (--image)"),
        "spark.kubernetes.namespace": blanks.fill(wishes.namespace, "namespace", "where the pods go (--namespace)"),
        "spark.kubernetes.driver.label.errata-run": label,
        "spark.kubernetes.executor.label.errata-run": label,
    }
    if mode == "client":
        places = locate_locally(job, wishes)
        return _build_spark_submit(job, wishes, places, master, mode, build_settings(job, places, "kubernetes", own))
    own["spark.kubernetes.authenticate.driver.serviceAccountName"] = blanks.fill(
        wishes.service_account, "service-account", "one that may make pods (--service-account)"
    )
    for name in job.variables:
        own[f"spark.kubernetes.driver.secretKeyRef.{name}"] = f"errata:{name}"
    places = (
        locate_archives(job, wishes, blanks, wishes.at) if wishes.env or wishes.at else locate_in_image(job, IMAGE_ROOT)
    )
    return _build_spark_submit(job, wishes, places, master, mode, build_settings(job, places, "kubernetes", own))


def build_settings(
    job: WorkerJob, places: SubmitPaths, kind: str, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Spark settings of one worker: Python, the project's settings, the core cap, and the target's own settings."""
    python = {"spark.pyspark.python": places.python, "spark.pyspark.driver.python": places.driver_python}
    return {**python, **job.conf, **build_core_settings(kind, job.cores, job.conf), **(own or {})}


def build_submit_lines(
    job: WorkerJob, wishes: SubmitOptions, places: SubmitPaths, conf: Mapping[str, str]
) -> CommandLines:
    """The arguments after master and deploy mode: name, files, settings, the entry file and its arguments."""
    archives = (("--archives", ",".join(places.archives)),) if places.archives else ()
    return (
        ("--name", job.name),
        *archives,
        ("--jars", ",".join(places.jars)),
        *(("--conf", f"{key}={value}") for key, value in conf.items()),
        (places.application,),
        job.arguments(places.root, wishes.parallel),
    )


def _build_spark_submit(
    job: WorkerJob, wishes: SubmitOptions, places: SubmitPaths, master: str, mode: str, conf: Mapping[str, str]
) -> CommandLines:
    start = (("spark-submit",), ("--master", master), ("--deploy-mode", mode))
    return (*start, *build_submit_lines(job, wishes, places, conf))


def _choose_master(
    job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, kind: str, example: str, meaning: str
) -> str:
    """The requested master, or the project's if it is of this kind, or a placeholder."""
    own = job.master if classify_master(job.master) == kind else None
    return blanks.fill(wishes.master or own, example, f"{meaning} (--master)")
