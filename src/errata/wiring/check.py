"""`errata check`: everything that is wrong with a project, in one pass. Reads project files, metadata and listings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from errata.model.product import Project
from errata.ports.tables import InputReader, TableReader, TagKeeper
from errata.project.check import check_project
from errata.project.load import PROJECT_FILE, read_project_files
from errata.project.problems import Path as KeyPath
from errata.project.problems import ProjectProblem, is_near
from errata.wiring.cluster_check import find_silent_clusters, report_silent_clusters
from errata.wiring.copy_check import find_copy_problems
from errata.wiring.lineage_check import find_lineage_problems
from errata.wiring.rule_check import find_dbt_problems, find_ref_problems, find_rule_problems, find_verify_problems
from errata.wiring.sink_check import find_sink_problems
from errata.wiring.transform_problems import find_query_problems
from errata.workspace import Workspace


def check_workspace(workspace: Workspace) -> tuple[ProjectProblem, ...]:
    """Check a project that loads against its transforms, tables and source files."""
    engines, project = workspace.engines, workspace.project
    silent = find_silent_clusters(project, engines.find_silent_clusters)
    found = _check(project, engines.tables, engines.inputs, engines.pins, {}, silent)
    more = (
        *find_copy_problems(workspace),
        *find_sink_problems(workspace, silent),
        *find_lineage_problems(workspace, silent),
    )
    return _sort((*found, *more))


def check_files(directory: Path | str) -> tuple[ProjectProblem, ...]:
    """Check a project whose files are wrong: all problems of the files, and those of what could be read of them."""
    from errata.engines.files.recorded import RecordingReader
    from errata.engines.files.source import FileSource
    from errata.engines.iceberg.metadata.tables import IcebergMetadata, TableLoader
    from errata.engines.iceberg.metadata.tags import IcebergTags
    from errata.engines.kafka.topics import KafkaTopics
    from errata.wiring.input_router import InputRouter

    files = read_project_files(directory)
    project = files.project
    if project is None:
        return _sort(files.problems)
    catalogs = TableLoader(project.catalogs)
    try:
        tables = IcebergMetadata(catalogs)
        nothing = RecordingReader(lambda _source: (), project.recordings.location)  # the ledger is not opened
        topics = KafkaTopics(project.kafka, project.redact)
        inputs = InputRouter(tables, FileSource(project.root, project.s3), nothing, topics)
        silent = find_silent_clusters(project, topics.find_silent)
        more = _check(project, tables, inputs, IcebergTags(catalogs), files.misread, silent)
    finally:
        catalogs.close()
    said = {(problem.file, problem.key) for problem in files.problems}
    return _sort((*files.problems, *(problem for problem in more if (problem.file, problem.key) not in said)))


def _sort(problems: Iterable[ProjectProblem]) -> tuple[ProjectProblem, ...]:
    """In the order in which a person goes through the files."""
    return tuple(sorted(problems, key=lambda one: (one.file != PROJECT_FILE, one.file, one.line or 0)))


def _check(
    project: Project,
    tables: TableReader,
    inputs: InputReader,
    pins: TagKeeper,
    misread: Mapping[str, Collection[KeyPath]],
    silent: Mapping[str, str],
) -> tuple[ProjectProblem, ...]:
    found = check_project(project, tables, inputs, misread, silent)
    said = {(problem.file, problem.key) for problem in found}
    more = (
        *report_silent_clusters(project, silent),
        *find_dbt_problems(project),
        *(one for product in project.products.values() for one in find_query_problems(project, product, tables)),
        *find_ref_problems(project, pins),
        *find_rule_problems(project, tables),
        *find_verify_problems(project, tables),
    )
    return (
        *found,
        *(
            problem
            for problem in more
            if (problem.file, problem.key) not in said and not is_near(problem.key, misread.get(problem.file, ()))
        ),
    )
