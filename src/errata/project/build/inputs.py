"""Build the inputs of a product, with the checks that involve several of their keys. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from errata.model.graph.read_rule import Shift, is_aligned, is_wider
from errata.model.partition import Grain
from errata.model.product import (
    Input,
    Project,
    Target,
)
from errata.model.product.input_policy import InputPolicy
from errata.project.build.completeness import check_completeness
from errata.project.build.eras import build_eras, check_row_rules
from errata.project.build.privacy import check_input_privacy
from errata.project.build.settings import to_absolute
from errata.project.build.sources.change_inputs import build_change_input, build_transactions_input, check_change_log
from errata.project.build.sources.recordings import check_recording, with_casts
from errata.project.build.sources.topic_inputs import build_record_eras, check_cluster, check_topic, list_record_columns
from errata.project.forms import InputForm, ProductForm, narrow
from errata.project.problems import ProblemReport
from errata.text.secrets import find_passwords


def check_table(table: str, path: tuple[str, ...], catalogs: Sequence[str] | None, report: ProblemReport) -> None:
    """Report a table of a catalog that the project does not have."""
    catalog = table.partition(".")[0]
    if catalogs is not None and catalog not in catalogs:
        report.at(path, f"expected a table of a catalog in errata.yaml ({', '.join(catalogs)})")


def build_inputs(
    name: str,
    file: InputForm,
    grain: Grain,
    root: Path,
    project: Project | None,
    others: Sequence[str],
    report: ProblemReport,
) -> tuple[Input, ...]:
    """An input; the ends of the transactions of a change log come before it, because they are read first."""
    if file.cdc is None:
        return (_build_input(name, file, grain, root, project, report),)
    check_change_log(name, file, grain, project, others, report)
    made = build_change_input(_build_input(name, file, grain, root, project, report), file.columns)
    return (build_transactions_input(made), made) if file.cdc.transactions else (made,)


def _build_input(
    name: str, file: InputForm, grain: Grain, root: Path, project: Project | None, report: ProblemReport
) -> Input:
    path = ("inputs", name)
    catalogs, clusters = (None, None) if project is None else (tuple(project.catalogs), tuple(project.kafka))
    if sum(one is not None for one in (file.table, file.files, file.recording, file.kafka)) != 1:
        report.at(path, "expected one of table, files, recording, kafka and own", found=False)
    if file.table is not None:
        check_table(file.table, (*path, "table"), catalogs, report)
    if file.files is not None:
        _check_pattern(file.files, file.partition, (*path, "files"), report)
    if file.version is not None and file.table is None:
        report.at_key((*path, "version"), f'the key "version" was refused in {".".join(path)}; only tables have tags')
    if file.has_own_snapshots:
        _check_reference(file, grain, path, report)
    unit = _check_input_grain(file, grain, path, report)
    for key, duration in (("lookback", file.lookback), ("lookahead", file.lookahead)):
        _check_span(duration, unit, file.partition, (*path, key), report)
    check_row_rules(file, path, report)
    check_completeness(file, grain, path, catalogs, report)
    check_recording(file, grain, project, path, report)
    if file.kafka is not None and file.cdc is not None:
        check_cluster(file.kafka, path, clusters, report)
    elif file.kafka is not None:
        check_topic(file, file.grain or grain, path, clusters, report)
    # the values of a change log are messages
    value = None if file.cdc else file.kafka.value if file.kafka else file.value
    columns = list_record_columns(value) if value else file.columns
    check_input_privacy(file, columns, project, path, report)
    return narrow(
        Input,
        file,
        name=name,
        files=None if file.files is None else to_absolute(root, file.files),
        eras=build_record_eras(value)
        if value
        else with_casts(file, build_eras(file, file.grain or grain, path, report), project),
        columns=columns,
    )


def _check_reference(file: InputForm, grain: Grain, path: tuple[str, ...], report: ProblemReport) -> None:
    """Refuse what cannot be read at a snapshot of each partition's own time."""
    key = (*path, "reference")
    if file.table is None:
        report.at(key, "only a table has snapshots; expected current, corrected_truth or none")
    if file.reference == "as_recorded" and not grain.is_time:
        report.at(key, "values have no end in time; expected a target by hour, day, month or year")
    for other, why in (
        ("version", "names one snapshot for all partitions"),
        ("columns", "describes one snapshot"),
        ("eras", "describes one snapshot"),
        ("rows", "counts the rows of one snapshot"),
    ):
        if getattr(file, other):
            said = f'the key "{other}" was refused in {".".join(path)}; it {why}, and {file.reference} reads several'
            report.at_key((*path, other), said)


def build_own_input(name: str, file: InputForm, target: Target, report: ProblemReport) -> Input:
    """The product's own earlier partitions as an input: the target itself, partitioned like the target."""
    path = ("inputs", name)
    for key in (
        "table",
        "files",
        "recording",
        "kafka",
        "value",
        "cdc",
        "partition",
        "grain",
        "reference",
        "version",
        "columns",
        "eras",
        "rows",
        "quarantine",
        "complete",
        "subjects",
    ):
        if getattr(file, key):
            report.at_key((*path, key), f'the key "{key}" was refused in {".".join(path)}; own output is the target')
    if file.drift != "approve":
        report.at((*path, "drift"), "own output is the target, which a campaign approves; expected no key")
    grain = target.grain
    if not grain.is_time:
        report.at((*path, "own"), "own output needs a target by hour, day, month or year; values have no order")
    else:
        _check_span(file.lookback, grain, target.column, (*path, "lookback"), report)
        if not int(re.sub(r"\D", "", file.lookback)):
            report.at((*path, "lookback"), f"own output is what came before: expected at least one {grain}")
    if int(re.sub(r"\D", "", file.lookahead)):
        report.at((*path, "lookahead"), "expected 0d, because later partitions are not there yet")
    if file.policy != InputPolicy():
        report.at_key((*path, "policy"), f'the key "policy" was refused in {".".join(path)}; own output is the target')
    return Input(
        name=name,
        table=target.table,
        partition=target.column,
        lookback=file.lookback,
        own=True,
        subjects=target.subjects,
    )


def _check_input_grain(file: InputForm, grain: Grain, path: tuple[str, ...], report: ProblemReport) -> Grain:
    """The finer of both grains, in which look-back and look-ahead are counted."""
    if file.grain is None or file.grain is grain:
        return grain
    key = (*path, "grain")
    if not grain.is_time or not file.grain.is_time:
        report.at(key, f"expected {grain}, the grain of the target, or no key: only times are nested")
        return grain
    if file.partition is None:
        report.at(key, "a grain needs the key partition, the column that it is the grain of")
    if is_wider(grain, file.grain):
        return file.grain
    for other in ("columns", "rows", "quarantine"):
        if getattr(file, other):
            said = f"a row of a {file.grain} belongs to several {grain}s and cannot be counted for one of them"
            report.at_key((*path, other), f'the key "{other}" was refused in {".".join(path)}; {said}')
    return grain


def check_single_own(file: ProductForm, report: ProblemReport) -> None:
    """Report every input of own output but the first."""
    own = [name for name, given in file.inputs.items() if given.own]
    for name in own[1:]:
        report.at(("inputs", name, "own"), f"expected one input of own output; {own[0]} is another", found=False)


def _check_pattern(pattern: str, partition: str | None, path: tuple[str, ...], report: ProblemReport) -> None:
    if find_passwords(pattern):
        report.at(path, "expected a place without a password; it is copied into run manifests", found=False)
    holes = set(re.findall(r"\{([^{}]*)\}", pattern))
    if partition is None and holes:
        report.at(path, "{column} in the pattern needs the key partition next to files")
    elif partition is not None and holes != {partition}:
        report.at(path, f"expected {{{partition}}} in place of the partition, and nothing else in braces")


def _check_span(
    duration: str, grain: Grain, partition: str | None, path: tuple[str, ...], report: ProblemReport
) -> None:
    if not is_aligned(duration, grain):
        wanted = f"whole {grain}s" if grain.is_time else "0d, because values have no order"
        also = " or months" if grain in (Grain.HOUR, Grain.DAY) else ""
        report.at(path, f"expected {wanted}{also}")
        return
    if Shift.parse(duration) != Shift() and partition is None:
        report.at(path, "a look-back or look-ahead needs the key partition, the column it goes by")
