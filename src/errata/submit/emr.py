"""Build the AWS command line for EMR and EMR Serverless. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from errata.submit.command import Placeholders
from errata.submit.job import SubmitOptions, WorkerJob
from errata.submit.paths import locate_archives
from errata.submit.spark import build_settings, build_submit_lines, build_yarn_env

CommandLines = tuple[tuple[str, ...], ...]
_PYTHON = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_SERVERLESS_CORES = {"spark.executor.cores": "4"}
"""EMR Serverless gives an executor four cores by default; the core cap must be computed with that."""


def build_emr(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, _mode: str) -> CommandLines:
    """A step of a running cluster: ``spark-submit`` on its primary node, the driver in YARN."""
    places = locate_archives(job, wishes, blanks, _fill_location(wishes, blanks))
    conf = build_settings(job, places, "yarn", {"spark.yarn.tags": f"errata,{job.run_id}"} | build_yarn_env(job))
    words = [word for line in build_submit_lines(job, wishes, places, conf) for word in line]
    step = {
        "Name": job.name,
        "Type": "CUSTOM_JAR",
        "Jar": "command-runner.jar",
        "ActionOnFailure": "CONTINUE",
        "Args": ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", *words],
    }
    cluster = blanks.fill(wishes.cluster_id, "j-CLUSTER", "the EMR cluster (--cluster-id)")
    return (
        ("aws", "emr", "add-steps"),
        ("--region", _fill_region(wishes, blanks)),
        ("--cluster-id", cluster),
        ("--steps", _json([step])),
    )


def build_emr_serverless(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, _mode: str) -> CommandLines:
    """A job run of an application; settings are passed as JSON, so that no value needs quoting twice."""
    places = locate_archives(job, wishes, blanks, _fill_location(wishes, blanks))
    properties = build_settings(replace(job, conf=_SERVERLESS_CORES | dict(job.conf)), places, "yarn")
    for name in job.variables:
        secret = blanks.fill(None, f"secret-{name}", f"the Secrets Manager secret whose text is {name}")
        properties[f"spark.emr-serverless.driverEnv.{name}"] = f"EMR.secret@{secret}"
    files = {"spark.archives": ",".join(places.archives), "spark.jars": ",".join(places.jars)}
    files |= {f"spark.emr-serverless.driverEnv.{key}": places.python for key in _PYTHON}
    files |= {"spark.executorEnv.PYSPARK_PYTHON": places.python}
    driver = {
        "entryPoint": places.application,
        "entryPointArguments": list(job.arguments(places.root, wishes.parallel)),
        "sparkSubmitParameters": " ".join(f"--conf {key}={value}" for key, value in files.items()),
    }
    overrides = {"applicationConfiguration": [{"classification": "spark-defaults", "properties": properties}]}
    application = blanks.fill(wishes.application_id, "application-id", "the EMR Serverless application")
    role = blanks.fill(wishes.role_arn, "role-arn", "the execution role (--role-arn)")
    return (
        ("aws", "emr-serverless", "start-job-run"),
        ("--region", _fill_region(wishes, blanks)),
        ("--application-id", application),
        ("--execution-role-arn", role),
        ("--name", job.name),
        ("--tags", f"errata-run={job.run_id},errata-project={job.project}"),
        # no timeout instead of the default of twelve hours; retries are safe, because a restarted worker loses nothing
        ("--execution-timeout-minutes", "0"),
        ("--retry-policy", "maxAttempts=3"),
        ("--job-driver", _json({"sparkSubmit": driver})),
        ("--configuration-overrides", _json(overrides)),
    )


def _fill_location(wishes: SubmitOptions, blanks: Placeholders) -> str:
    return blanks.fill(wishes.at, "s3://bucket/errata", "where application.py, the archives and jars/ are (--at)")


def _fill_region(wishes: SubmitOptions, blanks: Placeholders) -> str:
    return blanks.fill(wishes.region, "region", "the AWS region (--region)")


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
