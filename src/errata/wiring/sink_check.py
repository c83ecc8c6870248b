"""Look for the topics that products send to, for `errata check`. Only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from errata.errors import ErrataError, MissingDriver
from errata.project.check import open_report
from errata.project.problems import ProjectProblem
from errata.wiring.cluster_check import list_sent_topics
from errata.workspace import Workspace


def find_sink_problems(workspace: Workspace, silent: Collection[str] = ()) -> Iterator[ProjectProblem]:
    """Topics that are not there, each at its place in the files; those of ``silent`` clusters are not looked for."""
    for product in workspace.project.products.values():
        report = open_report(workspace.project, product.path)
        for path, place in list_sent_topics(product):
            if place.cluster in silent:
                continue
            try:
                workspace.engines.topic_writer.check(place)
            except MissingDriver as missing:
                report.at(path, f"not looked for: {missing.message}: {missing.hint}", found=False, level="warning")
            except ErrataError as error:
                report.at(path, workspace.project.redact(error.message), found=False)
        yield from report.problems
