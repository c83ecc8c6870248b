"""`errata submit`: print how to start a worker on a cluster."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session

PANEL = "Compute"


def _build_option(name: str, word: str, text: str) -> Any:
    return typer.Option(name, metavar=word, help=text)


Text = str | None


def submit(
    session: Session,
    run: Run,
    target: Annotated[
        str, _build_option("--print", "TARGET", "Cluster: emr-serverless, emr, kubernetes, yarn or standalone.")
    ],
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Number of workers.")] = 1,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", min=1, help="Chunks per worker in parallel.")] = 2,
    deploy_mode: Annotated[
        Text, _build_option("--deploy-mode", "MODE", "Where the driver runs: cluster, client.")
    ] = None,
    master: Annotated[
        Text, _build_option("--master", "URL", "Spark master (default: spark.master in errata.yaml).")
    ] = None,
    at: Annotated[Text, _build_option("--at", "URI", "Directory of application.py, the archives and jars/.")] = None,
    env: Annotated[Text, _build_option("--env", "ARCHIVE", "Packed Python environment.")] = None,
    project: Annotated[Text, _build_option("--project", "ARCHIVE", "Packed project directory.")] = None,
    region: Annotated[Text, _build_option("--region", "NAME", "AWS region.")] = None,
    application_id: Annotated[Text, _build_option("--application-id", "ID", "EMR Serverless application.")] = None,
    role_arn: Annotated[Text, _build_option("--role-arn", "ARN", "Execution role on EMR Serverless.")] = None,
    cluster_id: Annotated[Text, _build_option("--cluster-id", "ID", "EMR cluster.")] = None,
    image: Annotated[Text, _build_option("--image", "NAME", "Container image on Kubernetes.")] = None,
    namespace: Annotated[Text, _build_option("--namespace", "NAME", "Namespace on Kubernetes.")] = None,
    service_account: Annotated[
        Text, _build_option("--service-account", "NAME", "Service account of the driver on Kubernetes.")
    ] = None,
) -> None:
    """Print the command that starts workers on a cluster.

    Starts nothing. Missing values appear in angle brackets and are listed at the end.

    Example: errata submit bf-20260214-daily-revenue-7f3a21c0 --print yarn --workers 4
    """
    from errata.project import load_project
    from errata.submit.command import render_script
    from errata.submit.job import SubmitOptions, build_job
    from errata.submit.targets import build_command

    wishes = SubmitOptions(
        workers, parallel, deploy_mode, master, at.rstrip("/") if at else None, env, project, region, application_id,
        role_arn, cluster_id, image, namespace, service_account,
    )  # fmt: skip
    loaded = load_project(session.directory)
    with session.client() as client:
        shown = client.show(run)
        run_id = shown.run_id
        manifest = json.loads(client.manifest_bytes(run_id))
        steps = client.next_steps(run_id) if shown.state == "failed" else ()
    job = build_job(
        loaded, manifest, run_id, session.person, _find_here(), state=shown.state, next_command="".join(steps[:1])
    )
    built = build_command(target, job, wishes)
    data = {
        "run_id": run_id,
        "target": target,
        "commands": [list(built.argv)] * workers,
        "fill_in": dict(built.blanks),
        "environment": list(built.variables),
        "jars": [{"file": jar.name, "sha256": jar.sha256} for jar in built.jars],
        "notes": list(built.notes),
    }
    session.answer(data, lambda _width: render_script(built))


def _find_here() -> Any:
    from importlib.resources import files

    from errata.jars import default_cache_dir
    from errata.submit.job import LocalMachine

    return LocalMachine(
        sys.executable, str(files("errata.submit").joinpath("application.py")), str(default_cache_dir())
    )
