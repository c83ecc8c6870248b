"""`errata submit`: start, follow and stop workers on a cluster, or print how to start them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from errata.cli.app.options import Run
from errata.cli.app.session import Session
from errata.errors import UsageError

PANEL = "Compute"


def _build_option(name: str, word: str, text: str) -> Any:
    return typer.Option(name, metavar=word, help=text)


Text = str | None


def submit(
    session: Session,
    run: Run,
    start: Annotated[
        Text, _build_option("--start", "TARGET", "Start on: emr-serverless, emr, kubernetes or standalone.")
    ] = None,
    target: Annotated[
        Text, _build_option("--print", "TARGET", "Print for: emr-serverless, emr, kubernetes, yarn, standalone.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the workers that were started.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Number of workers (default: 1).")
    ] = None,
    deadline: Annotated[
        Text, _build_option("--deadline", "WHEN", "As many workers as 8h, or 2026-11-17T06:00Z, takes.")
    ] = None,
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
    """Start, follow and stop workers on a cluster.

    --start ends when the run is computed, and stops everything that it started; Ctrl-C stops it, too. Workers that are
    running already are followed. Release, image and queue come from clusters in errata.yaml and must be what the plan
    sealed. --deadline decides the number of workers and cores; what limits.max_usd does not allow is refused.

    --print starts nothing. Missing values appear in angle brackets and are listed at the end.

    Example: errata submit bf-20260214-daily-revenue-7f3a21c0 --start emr-serverless --deadline 8h
    """
    if (start is not None) + (target is not None) + stop != 1:
        raise UsageError("errata submit was refused; expected one of --start TARGET, --stop and --print TARGET")
    if target is None:
        given = {
            "--deploy-mode": deploy_mode, "--master": master, "--at": at, "--env": env, "--project": project,
            "--region": region, "--application-id": application_id, "--role-arn": role_arn,
            "--cluster-id": cluster_id, "--namespace": namespace, "--service-account": service_account,
        }  # fmt: skip
        _refuse_printed_only([name for name, value in given.items() if value is not None])
        _start_or_stop(session, run, start, workers, parallel, deadline, image)
        return
    if deadline is not None:
        raise UsageError("--deadline with --print was refused; expected it with --start")
    workers = workers or 1
    from errata.project import load_project
    from errata.submit.command import render_script
    from errata.submit.here import find_here
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
        loaded, manifest, run_id, session.person, find_here(), state=shown.state, next_command="".join(steps[:1])
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


def _refuse_printed_only(names: list[str]) -> None:
    if names:
        raise UsageError(
            f"{', '.join(names)} was refused; with --start and --stop, expected it under clusters in errata.yaml",
            hint="docs/guides/start-and-stop-workers.md",
        )


def _start_or_stop(
    session: Session, run: str, start: Text, workers: int | None, parallel: int, deadline: Text, image: Text
) -> None:
    from errata.cli.render.run import render_submission

    with session.client() as client:
        if start is None:
            view = client.stop_workers(run, as_=session.person)
        else:
            view = client.submit(
                run, start, workers=workers, parallel=parallel, deadline=deadline, image=image, as_=session.person
            )
        session.answer_about(client, view, lambda width: render_submission(view, width))
