"""Build the AWS command line for EMR and EMR Serverless. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    """A step of a running cluster."""
    step = build_step(job, wishes, blanks, build_yarn_env(job))
    cluster = blanks.fill(wishes.cluster_id, "j-CLUSTER", "the EMR cluster (--cluster-id)")
    named = {key: value for key, value in step.items() if key != "HadoopJarStep"}
    words = {"Type": "CUSTOM_JAR", "Jar": step["HadoopJarStep"]["Jar"]}
    return (
        ("aws", "emr", "add-steps"),
        ("--region", _fill_region(wishes, blanks)),
        ("--cluster-id", cluster),
        ("--steps", _json([{"Name": job.name} | words | named | {"Args": step["HadoopJarStep"]["Args"]}])),
    )


def build_step(
    job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, own: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A step as the API takes it: ``spark-submit`` on the primary node, the driver in YARN."""
    places = locate_archives(job, wishes, blanks, _fill_location(wishes, blanks))
    conf = build_settings(job, places, "yarn", {"spark.yarn.tags": f"errata,{job.run_id}"} | dict(own or {}))
    words = [word for line in build_submit_lines(job, wishes, places, conf) for word in line]
    arguments = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", *words]
    return {
        "Name": job.name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments},
    }


def build_emr_serverless(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, _mode: str) -> CommandLines:
    """A job run of an application; settings are passed as JSON, so that no value needs quoting twice."""

    def name_secret(name: str) -> str:
        return blanks.fill(None, f"secret-{name}", f"the Secrets Manager secret whose text is {name}")

    run = build_job_run(job, wishes, blanks, name_secret)
    return (
        ("aws", "emr-serverless", "start-job-run"),
        ("--region", _fill_region(wishes, blanks)),
        ("--application-id", run["applicationId"]),
        ("--execution-role-arn", run["executionRoleArn"]),
        ("--name", run["name"]),
        ("--tags", ",".join(f"{key}={value}" for key, value in run["tags"].items())),
        ("--execution-timeout-minutes", str(run["executionTimeoutMinutes"])),
        ("--retry-policy", f"maxAttempts={run['retryPolicy']['maxAttempts']}"),
        ("--job-driver", _json(run["jobDriver"])),
        ("--configuration-overrides", _json(run["configurationOverrides"])),
    )


def build_job_run(
    job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, name_secret: Callable[[str], str]
) -> dict[str, Any]:
    """A job run as the API takes it; ``name_secret`` gives the secret of a variable."""
    places = locate_archives(job, wishes, blanks, _fill_location(wishes, blanks))
    properties = build_settings(replace(job, conf=_SERVERLESS_CORES | dict(job.conf)), places, "yarn")
    properties |= {
        f"spark.emr-serverless.driverEnv.{name}": f"EMR.secret@{name_secret(name)}" for name in job.variables
    }
    files = {"spark.archives": ",".join(places.archives), "spark.jars": ",".join(places.jars)}
    files |= {f"spark.emr-serverless.driverEnv.{key}": places.python for key in _PYTHON}
    files |= {"spark.executorEnv.PYSPARK_PYTHON": places.python}
    driver = {
        "entryPoint": places.application,
        "entryPointArguments": list(job.arguments(places.root, wishes.parallel)),
        "sparkSubmitParameters": " ".join(f"--conf {key}={value}" for key, value in files.items()),
    }
    return {
        "applicationId": blanks.fill(wishes.application_id, "application-id", "the EMR Serverless application"),
        "executionRoleArn": blanks.fill(wishes.role_arn, "role-arn", "the execution role (--role-arn)"),
        "name": job.name,
        "tags": {"errata-run": job.run_id, "errata-project": job.project},
        # no timeout instead of the default of twelve hours; retries are safe, because a restarted worker loses nothing
        "executionTimeoutMinutes": 0,
        "retryPolicy": {"maxAttempts": 3},
        "jobDriver": {"sparkSubmit": driver},
        "configurationOverrides": {
            "applicationConfiguration": [{"classification": "spark-defaults", "properties": properties}]
        },
    }


def _fill_location(wishes: SubmitOptions, blanks: Placeholders) -> str:
    return blanks.fill(wishes.at, "s3://bucket/errata", "where application.py, the archives and jars/ are (--at)")


def _fill_region(wishes: SubmitOptions, blanks: Placeholders) -> str:
    return blanks.fill(wishes.region, "region", "the AWS region (--region)")


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
