"""One worker of one run, described independently of the cluster. Pure.

A job contains no secret: settings whose value comes from the environment are withheld, and the variables themselves are
passed as references. The ledger's address is not in it either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.errors import UsageError
from errata.model.product import Project

# the builders for each cluster set these themselves
_SET_BY_BUILDERS = frozenset({"spark.master", "spark.jars", "spark.app.name", "spark.submit.deployMode"})


@dataclass(frozen=True, slots=True)
class PinnedJar:
    """A jar of the run manifest."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """Paths on the machine on which the command is printed."""

    python: str
    application: str  # errata/submit/application.py
    jars: str  # directory of the verified jars


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Options given by the user; None leaves a placeholder or the target's default."""

    workers: int = 1
    parallel: int = 2
    deploy_mode: str | None = None  # client | cluster
    master: str | None = None
    at: str | None = None  # where the cluster finds application.py, the archives and jars/
    env: str | None = None
    project: str | None = None
    region: str | None = None
    application_id: str | None = None
    role_arn: str | None = None
    cluster_id: str | None = None
    image: str | None = None
    namespace: str | None = None
    service_account: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """What a worker needs, wherever it runs."""

    run_id: str
    project: str
    root: str
    person: str
    master: str  # from errata.yaml
    conf: Mapping[str, str]
    jars: tuple[PinnedJar, ...]
    here: LocalMachine
    state: str = "approved"
    next_command: str = ""  # what has to come before a worker can help, in this state
    own_jars: tuple[str, ...] = ()  # ``spark.jars`` from errata.yaml
    cores: int | None = None
    variables: tuple[str, ...] = ()  # environment variables that the project files read
    withheld: Mapping[str, str] = field(default_factory=dict)  # setting → the text with ${NAME}
    only_here: tuple[str, ...] = ()  # databases that other machines cannot reach
    paths_here: tuple[str, ...] = ()  # data on local paths

    @property
    def name(self) -> str:
        """Name of the Spark application."""
        return f"errata {self.run_id}"

    def arguments(self, root: str, parallel: int) -> tuple[str, ...]:
        """Arguments with which ``application.py`` starts the worker."""
        return ("-C", root, "--as", self.person, "run", self.run_id, "--parallel", str(parallel))


def build_job(
    project: Project,
    manifest: Mapping[str, Any],
    run_id: str,
    person: str,
    here: LocalMachine,
    *,
    state: str = "approved",
    next_command: str = "",
) -> WorkerJob:
    """Build the job of a sealed run; settings and limits come from the project, jars from the manifest."""
    product = project.products.get(manifest["product"])
    if product is None:
        raise UsageError(
            f"run {run_id} is of product {manifest['product']}; expected it in {project.root}/products, found none",
            hint="errata check",
        )
    throttle = product.throttle or project.throttle
    plain = {key: value for key, value in project.spark_conf.items() if key not in _SET_BY_BUILDERS}
    held = {key: value for key, value in plain.items() if any(secret in value for secret in project.secrets.values())}
    return WorkerJob(
        run_id=run_id,
        project=project.name,
        root=project.root,
        person=person,
        master=project.spark_master,
        conf={key: value for key, value in plain.items() if key not in held},
        jars=tuple(
            PinnedJar(_jar_file_name(coordinate), digest) for coordinate, digest in manifest["code"]["jars"].items()
        ),
        here=here,
        state=state,
        next_command=next_command,
        own_jars=tuple(filter(None, project.spark_conf.get("spark.jars", "").split(","))),
        cores=throttle.cores,
        variables=tuple(sorted(project.secrets)),
        withheld={key: project.redact(value) for key, value in held.items()},
        only_here=tuple(_list_local_databases(project)),
        paths_here=tuple(_list_local_paths(project, [source["location"] for source in _file_inputs(manifest)])),
    )


def _file_inputs(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [source for source in manifest["inputs"] if source["kind"] == "files"]


def _jar_file_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _list_local_databases(project: Project) -> Sequence[str]:
    found = ["the ledger"] if project.ledger.startswith("sqlite") else []
    return found + [f"catalog {c.name}" for c in project.catalogs.values() if "sqlite:" in (c.uri or "")]


def _list_local_paths(project: Project, files: Sequence[str]) -> Sequence[str]:
    places = [*(catalog.warehouse or "" for catalog in project.catalogs.values()), *files]
    return [project.redact(place) for place in places if place.startswith(("/", "file:"))]
