"""Look for the topics that products send to, for `errata check`. Only reads."""

from __future__ import annotations

from collections.abc import Iterator

from errata.errors import ErrataError, MissingDriver
from errata.model.kafka.declaration import TopicPlace
from errata.model.product import Product
from errata.model.product.sinks import SEND
from errata.project.check import open_report
from errata.project.problems import Path, ProjectProblem
from errata.workspace import Workspace


def find_sink_problems(workspace: Workspace) -> Iterator[ProjectProblem]:
    """Topics that are not there, or whose cluster does not answer, each at its place in the files."""
    for product in workspace.project.products.values():
        report = open_report(workspace.project, product.path)
        for path, place in _list_places(product):
            try:
                workspace.engines.topic_writer.check(place)
            except MissingDriver as missing:
                report.at(path, f"not looked for: {missing.message}: {missing.hint}", found=False, level="warning")
            except ErrataError as error:
                report.at(path, workspace.project.redact(error.message), found=False)
        yield from report.problems


def _list_places(product: Product) -> Iterator[tuple[Path, TopicPlace]]:
    for name, sink in product.sinks.items():
        if sink.decision == SEND:
            yield ("sinks", name, "topic"), TopicPlace(str(sink.cluster), str(sink.topic))
    if product.publish.corrections_topic is not None:
        yield ("publish", "corrections", "topic"), product.publish.corrections_topic
