"""Look for the place that lineage events go to, for `errata check` and `errata doctor`. Only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from errata.errors import ErrataError, MissingDriver
from errata.project.check import open_report
from errata.project.load import PROJECT_FILE
from errata.project.problems import ProjectProblem
from errata.views.checks import DoctorCheck
from errata.workspace import Workspace

_HINT = "check lineage in errata.yaml; until it works, events stay owed and nothing else waits for them"


def find_lineage_problems(workspace: Workspace, silent: Collection[str] = ()) -> Iterator[ProjectProblem]:
    """Whether the package is there, and the topic; a collector that is down is no problem of the files.

    A topic of a ``silent`` cluster is not looked for.
    """
    settings = workspace.project.lineage
    if settings is None or (settings.kafka is not None and settings.kafka.cluster in silent):
        return
    report = open_report(workspace.project, PROJECT_FILE)
    if name := workspace.project.find_unset_variable(settings):
        report.at(("lineage",), f"not looked for: {name} is not set", found=False, level="warning")
    else:
        try:
            workspace.engines.lineage.check()
        except MissingDriver as missing:
            report.at(("lineage",), f"{missing.message}: {missing.hint}", found=False, level="warning")
        except ErrataError as error:
            said = workspace.project.redact(error.message)
            report.at(("lineage", settings.transport), said, found=False, level="warning")
    yield from report.problems


def check_lineage(workspace: Workspace) -> Iterator[DoctorCheck]:
    """Where lineage goes, and whether it can go there now."""
    settings = workspace.project.lineage
    if settings is None:
        return
    if name := workspace.project.find_unset_variable(settings):
        yield DoctorCheck("lineage", ok=False, found=f"the environment variable {name} is not set", hint=_HINT)
        return
    try:
        yield DoctorCheck("lineage", ok=True, found=workspace.engines.lineage.check())
    except ErrataError as error:
        hint = error.hint if isinstance(error, MissingDriver) and error.hint else _HINT
        yield DoctorCheck("lineage", ok=False, found=error.message, hint=hint)
