"""Build the sources of recordings from ``errata.yaml``, and check inputs that read them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from errata.model.duration import to_days
from errata.model.partition import Grain
from errata.model.product import Input, Project
from errata.model.product.eras import Era, cast_columns, eras_or_default
from errata.model.recording.business_range import find_pattern_flaw
from errata.model.recording.declaration import HttpSource, Source
from errata.model.recording.window_query import find_query_flaw
from errata.project.build.sources.topic_inputs import check_value
from errata.project.forms import ProjectForm
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.problem_texts import hint_nearest


def build_sources(file: ProjectForm, report: ProblemReport) -> dict[str, Source]:
    """Sources by name."""
    return {name: _build_source(name, given, file, report) for name, given in file.sources.items()}


def _build_source(name: str, given: Source, file: ProjectForm, report: ProblemReport) -> Source:
    path = ("sources", name)
    if given.range.name is not None and (flaw := find_pattern_flaw(given.range.name)):
        report.at((*path, "range", "name"), flaw)
    if given.range.name is not None and given.range.column is not None:
        report.at((*path, "range"), "expected one of name and column", found=False)
    if len(given.delimiter) != 1 or given.delimiter in '"\r\n':
        report.at((*path, "delimiter"), "expected one character other than the quote")
    if given.sql is not None:
        _check_sql(given, file, path, report)
    if given.http is not None:
        _check_http(given, given.http, path, report)
    if given.kafka is not None:
        _check_topic_source(given, file, path, report)
    return replace(given, name=name)


def _check_http(given: Source, http: HttpSource, path: Path, report: ProblemReport) -> None:
    addresses = [(("url",), http.url), *([(("token", "url"), http.token.url)] if http.token else [])]
    for key, url in addresses:
        parts = urlsplit(url)
        if not url.startswith("${") and (parts.scheme not in ("http", "https") or not parts.hostname):
            report.at((*path, "http", *key), "expected an http or https address", found=False)
        if parts.username or parts.password:
            said = "expected no user and password in the address; headers or token hold credentials"
            report.at((*path, "http", *key), said, found=False)
    if given.sql is not None or (given.format != "json" and http.paging != "file"):
        report.at((*path, "http"), "expected format: json, and no sql beside it", found=False)
    if http.window != "none" and (http.start is None or http.end is None):
        report.at((*path, "http"), f"expected start and end, the parameters for the {http.window}", found=False)
    if http.paging == "id" and http.id is None:
        report.at((*path, "http", "paging"), "expected id beside it, which the next page begins after")
    if http.paging not in ("none", "file") and http.parameter is None:
        report.at((*path, "http", "paging"), f"expected parameter beside it, for the {http.paging}")
    if (http.paging == "cursor") != (http.cursor is not None):
        report.at((*path, "http", "paging"), "expected cursor with paging: cursor, and only then")


def _check_topic_source(given: Source, file: ProjectForm, path: Path, report: ProblemReport) -> None:
    if given.kafka is not None and given.kafka.cluster not in file.kafka:
        known = ", ".join(file.kafka) or "there is none"
        report.at((*path, "kafka", "cluster"), f"expected a cluster of kafka in errata.yaml ({known})")
    if given.sql is not None or given.http is not None or given.format == "csv":
        report.at((*path, "kafka"), "expected format: parquet or json, and no sql or http beside it", found=False)


def _check_sql(given: Source, file: ProjectForm, path: Path, report: ProblemReport) -> None:
    known = file.warehouses.get(given.sql.warehouse) if given.sql else None
    if known is None:
        report.at((*path, "sql", "warehouse"), "expected a warehouse of errata.yaml")
    if given.format != "parquet":
        report.at((*path, "format"), "rows of a database are kept as parquet; expected parquet")
    if given.sql and find_query_flaw(given.sql.query):
        report.at((*path, "sql", "query"), find_query_flaw(given.sql.query), found=False)


def check_retention(file: ProjectForm, report: ProblemReport) -> None:
    """Refuse a time in which no run could be computed, judged and published."""
    for key in ("pins", "staged", "candidates"):
        if to_days(getattr(file.retention, key)) < 1:
            report.at(("retention", key), "expected at least 1d")


def check_recording(file: Input, grain: Grain, project: Project | None, path: Path, report: ProblemReport) -> None:
    """Check an input that reads a recording."""
    if file.recording is None:
        return
    known = () if project is None else tuple(project.sources)
    if project is not None and file.recording not in known:
        near = hint_nearest(file.recording, known)
        report.at((*path, "recording"), f"expected a source of errata.yaml ({', '.join(known) or 'none'}){near}")
    topic = project.sources[file.recording].kafka if project is not None and file.recording in known else None
    if topic is not None and file.cdc is None:
        check_value(file, file.value, path, report)
    elif not file.columns:
        said = f'missing key "columns" in {".".join(map(str, path))}, which a recording needs'
        report.at_key((*path, "columns"), said)
    if file.value is not None and topic is None and file.recording in known:
        said = f'the key "value" was refused in {".".join(map(str, path))}; {file.recording} is no topic'
        report.at_key((*path, "value"), said)
    if file.partition is not None and not grain.is_time:
        report.at(
            (*path, "partition"), "recorded files are found by time; expected a target by hour, day, month or year"
        )
    for key in ("complete", "reference", "version"):
        if getattr(file, key):
            said = f'the key "{key}" was refused in {".".join(map(str, path))}; a recording has none'
            report.at_key((*path, key), said)


def with_casts(file: Input, eras: Sequence[Era], project: Project | None) -> tuple[Era, ...]:
    """The eras of an input; those of a recording of text give every declared column its type.

    The casts are sealed with the plan, as if the product file had them.
    """
    source = project.sources.get(file.recording or "") if project else None
    if source is None or not source.is_untyped or not file.columns:
        return tuple(eras)
    return tuple(cast_columns(era, file.columns) for era in eras_or_default(eras))
