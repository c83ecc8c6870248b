"""Where a cluster finds what a worker needs: the entry file, the Python environment, the project, the jars. Pure.

A driver that runs here (client mode) uses what is here; only executors are sent things. A driver that runs in the
cluster gets archives, unpacked in its working directory under fixed names, or finds everything in its image.
"""

from __future__ import annotations

from dataclasses import dataclass

from errata.submit.command import Placeholders
from errata.submit.job import SubmitOptions, WorkerJob

ENVIRONMENT, PROJECT = "environment", "project"


@dataclass(frozen=True, slots=True)
class SubmitPaths:
    """Files as ``spark-submit`` is told of them."""

    application: str
    root: str  # the project, for ``-C``
    jars: tuple[str, ...]
    python: str  # of executors
    driver_python: str
    archives: tuple[str, ...] = ()


def locate_locally(job: WorkerJob, wishes: SubmitOptions) -> SubmitPaths:
    """Client mode: the driver is a process of this machine."""
    archives = (f"{wishes.env}#{ENVIRONMENT}",) if wishes.env else ()
    python = f"./{ENVIRONMENT}/bin/python" if wishes.env else job.here.python
    jars = (*(f"{job.here.jars}/{jar.name}" for jar in job.jars), *job.own_jars)
    return SubmitPaths(job.here.application, job.root, jars, python, job.here.python, archives)


def locate_archives(job: WorkerJob, wishes: SubmitOptions, blanks: Placeholders, at: str | None) -> SubmitPaths:
    """Cluster mode with archives; below ``at`` if that is given, else uploaded from here."""
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
    """Cluster mode with an image that holds everything below one directory."""
    place = f"local://{at}"
    jars = (*(f"{place}/jars/{jar.name}" for jar in job.jars), *job.own_jars)
    python = f"{at}/{ENVIRONMENT}/bin/python"
    return SubmitPaths(f"{place}/application.py", f"{at}/{PROJECT}", jars, python, python)
