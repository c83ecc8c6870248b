"""Locate what a worker needs on a cluster: the entry file, the Python environment, the project, the jars. Pure.

In client mode the driver uses local files, and only executors are sent files. In cluster mode the driver gets archives,
unpacked in its working directory under fixed names, or finds everything in its image.
"""

from __future__ import annotations

from dataclasses import dataclass

from errata.submit.command import Placeholders
from errata.submit.job import SubmitOptions, WorkerJob

ENVIRONMENT, PROJECT = "environment", "project"


@dataclass(frozen=True, slots=True)
class SubmitPaths:
    """Paths passed to ``spark-submit``."""

    application: str
    root: str  # the project directory, for ``-C``
    jars: tuple[str, ...]
    python: str  # for executors
    driver_python: str
    archives: tuple[str, ...] = ()


def locate_locally(job: WorkerJob, wishes: SubmitOptions) -> SubmitPaths:
    """Client mode: the driver is a process on this machine."""
    archives = (f"{wishes.env}#{ENVIRONMENT}",) if wishes.env else ()
    python = f"./{ENVIRONMENT}/bin/python" if wishes.env else job.here.python
    jars = (*(f"{job.here.jars}/{jar.name}" for jar in job.jars), *job.own_jars)
    return SubmitPaths(job.here.application, job.root, jars, python, job.here.python, archives)


def locate_archives(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, at: str | None) -> SubmitPaths:
    """Cluster mode with archives, located below ``at`` or uploaded from this machine."""
    env = wishes.env or (at and f"{at}/{ENVIRONMENT}.tar.gz")
    project = wishes.project or (at and f"{at}/{PROJECT}.tar.gz")
    env = blanks.fill(env, "environment.tar.gz", "the packed Python environment, Errata in it (--env)")
    project = blanks.fill(project, "project.tar.gz", "the packed project directory (--project)")
    jars = (*(f"{at}/jars/{jar.name}" if at else f"{job.here.jars}/{jar.name}" for jar in job.jars), *job.own_jars)
    application = f"{at}/application.py" if at else job.here.application
    python = f"./{ENVIRONMENT}/bin/python"
    return SubmitPaths(
        application, f"./{PROJECT}", jars, python, python, (f"{env}#{ENVIRONMENT}", f"{project}#{PROJECT}")
    )


def locate_in_image(job: WorkerJob, at: str) -> SubmitPaths:
    """Cluster mode with an image that contains everything below one directory."""
    place = f"local://{at}"
    jars = (*(f"{place}/jars/{jar.name}" for jar in job.jars), *job.own_jars)
    python = f"{at}/{ENVIRONMENT}/bin/python"
    return SubmitPaths(f"{place}/application.py", f"{at}/{PROJECT}", jars, python, python)
