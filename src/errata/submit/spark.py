"""``spark-submit`` for standalone clusters, YARN and Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from errata.model.product.cluster import core_settings, kind_of
from errata.submit.command import Blanks
from errata.submit.job import Job, Wishes
from errata.submit.paths import Places, from_here, in_image, unpacked

Lines = tuple[tuple[str, ...], ...]
_IMAGE = "/opt/errata"
_LABEL = 63
_REDACTED = "(?i)secret|password|token|access[.]?key|appMasterEnv"
"""Spark's own expression, and the variables that travel to YARN as settings: the Spark UI shows neither."""


def standalone(job: Job, wishes: Wishes, blanks: Blanks, _mode: str) -> Lines:
    """The driver runs here; Spark's own cluster manager takes no Python driver."""
    master = _master(job, wishes, blanks, "standalone", "spark://host:7077", "the standalone master")
    places = from_here(job, wishes)
    return _spark_submit(job, wishes, places, master, "client", settings(job, places, "standalone"))


def yarn(job: Job, wishes: Wishes, blanks: Blanks, mode: str) -> Lines:
    """The driver runs in the application master, or here."""
    tags = {"spark.yarn.tags": f"errata,{job.run_id}"}
    if mode == "client":
        places = from_here(job, wishes)
        return _spark_submit(job, wishes, places, "yarn", mode, settings(job, places, "yarn", tags))
    places = unpacked(job, wishes, blanks, wishes.at)
    return _spark_submit(job, wishes, places, "yarn", mode, settings(job, places, "yarn", tags | yarn_variables(job)))


def yarn_variables(job: Job) -> dict[str, str]:
    """The project's variables for the driver in the application master; references, for a shell to fill in."""
    found = {f"spark.yarn.appMasterEnv.{name}": f"${{{name}}}" for name in job.variables}
    return found | ({"spark.redaction.regex": _REDACTED} if found else {})


def kubernetes(job: Job, wishes: Wishes, blanks: Blanks, mode: str) -> Lines:
    """The driver runs in a pod that has everything in its image, or gets archives; or here."""
    master = _master(job, wishes, blanks, "kubernetes", "k8s://https://host:6443", "the API server")
    label = job.run_id[:_LABEL].rstrip("-._")
    own = {
        "spark.kubernetes.container.image": blanks.fill(wishes.image, "image", "the container image (--image)"),
        "spark.kubernetes.namespace": blanks.fill(wishes.namespace, "namespace", "where the pods go (--namespace)"),
        "spark.kubernetes.driver.label.errata-run": label,
        "spark.kubernetes.executor.label.errata-run": label,
    }
    if mode == "client":
        places = from_here(job, wishes)
        return _spark_submit(job, wishes, places, master, mode, settings(job, places, "kubernetes", own))
    own["spark.kubernetes.authenticate.driver.serviceAccountName"] = blanks.fill(
        wishes.service_account, "service-account", "one that may make pods (--service-account)"
    )
    for name in job.variables:
        own[f"spark.kubernetes.driver.secretKeyRef.{name}"] = f"errata:{name}"
    places = unpacked(job, wishes, blanks, wishes.at) if wishes.env or wishes.at else in_image(job, _IMAGE)
    return _spark_submit(job, wishes, places, master, mode, settings(job, places, "kubernetes", own))


def settings(job: Job, places: Places, kind: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Spark settings of one worker: Python, the project's own, the cap, and what the target adds."""
    python = {"spark.pyspark.python": places.python, "spark.pyspark.driver.python": places.driver_python}
    return {**python, **job.conf, **core_settings(kind, job.cores, job.conf), **(own or {})}


def submit_lines(job: Job, wishes: Wishes, places: Places, conf: Mapping[str, str]) -> Lines:
    """What follows master and deploy mode: name, files, settings, the entry file and its arguments."""
    archives = (("--archives", ",".join(places.archives)),) if places.archives else ()
    return (
        ("--name", job.name),
        *archives,
        ("--jars", ",".join(places.jars)),
        *(("--conf", f"{key}={value}") for key, value in conf.items()),
        (places.application,),
        job.arguments(places.root, wishes.parallel),
    )


def _spark_submit(job: Job, wishes: Wishes, places: Places, master: str, mode: str, conf: Mapping[str, str]) -> Lines:
    start = (("spark-submit",), ("--master", master), ("--deploy-mode", mode))
    return (*start, *submit_lines(job, wishes, places, conf))


def _master(job: Job, wishes: Wishes, blanks: Blanks, kind: str, example: str, meaning: str) -> str:
    """The one that was asked for, else the project's if it is of this kind."""
    own = job.master if kind_of(job.master) == kind else None
    return blanks.fill(wishes.master or own, example, f"{meaning} (--master)")
