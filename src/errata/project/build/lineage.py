"""Build the settings of lineage from ``errata.yaml``, with the checks that involve several keys. Pure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from errata.model.lineage.declaration import TRANSPORTS, LineageSettings
from errata.project.build.consumers import check_known, require_one
from errata.project.build.partition_places import check_url
from errata.project.build.settings import has_scheme, to_absolute
from errata.project.forms import ProductForm, ProjectForm
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import hint_nearest


def build_lineage(file: ProjectForm, root: Path, report: ProblemReport) -> LineageSettings | None:
    """Where lineage events go; None if nowhere."""
    given = file.lineage
    if given is None:
        return None
    path = ("lineage",)
    require_one(given, TRANSPORTS, path, report)
    if given.http is not None:
        check_url(given.http.url, (*path, "http", "url"), report)
    if given.kafka is not None:
        check_known(
            given.kafka.cluster, file.kafka, (*path, "kafka", "cluster"), "a Kafka cluster of errata.yaml", report
        )
    if given.file is not None and has_scheme(given.file):
        report.at((*path, "file"), "expected a file on this machine")
    for name in given.datasets:
        check_known(name, file.catalogs, (*path, "datasets", name), "a catalog of errata.yaml", report)
    return replace(given, file=None if given.file is None else to_absolute(root, given.file))


def check_column_lineage(file: ProductForm, report: ProblemReport) -> None:
    """Report columns whose declared origin is no column of an input."""
    for column, places in file.made_from.items():
        for n, place in enumerate(places):
            name, dot, found = place.partition(".")
            if not (dot and found):
                report.at(("made_from", column, n), "expected INPUT.COLUMN")
            elif name not in file.inputs:
                report.at(
                    ("made_from", column, n), f"expected an input of this product{hint_nearest(name, file.inputs)}"
                )
