"""Topics as inputs: keys that belong together, and the columns of their records. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.model.kafka.declaration import RECORD_COLUMNS, KafkaTopic, RecordValue
from errata.model.partition import Grain
from errata.model.product import Input
from errata.model.product.eras import Era
from errata.project.forms import InputForm
from errata.project.problems import Path, ProblemReport

_TIMES = ("date", "timestamp", "timestamptz")


def list_record_columns(value: RecordValue) -> dict[str, str]:
    """Columns that the transform sees: those of the value, then those of the record."""
    fields = value.columns if value.format == "json" else {"value": "string"}
    return {**fields, **RECORD_COLUMNS}


def build_record_eras(value: RecordValue) -> tuple[Era, ...]:
    """Fields of JSON are text until they are cast; a record whose field cannot be cast is quarantined."""
    return (Era(value.format, cast={name: kind for name, kind in value.columns.items() if kind != "string"}),)


def check_value(file: Input, value: RecordValue | None, path: Path, report: ProblemReport) -> None:
    """Report what the values of records, of a topic or its recording, cannot be read as."""
    here = ".".join(map(str, path))
    if value is None:
        report.at_key(path, f'missing key "value" in {here}: what the records of the topic hold')
        return
    for key in ("columns", "eras"):
        if getattr(file, key):
            report.at_key((*path, key), f'the key "{key}" was refused in {here}; records have the columns of value')
    place = (*path, "kafka", "value") if file.kafka else (*path, "value")
    if value.format == "json" and not value.columns:
        report.at_key(place, f'missing key "columns" in {".".join(map(str, place))}, which format json needs')
    if value.format == "text" and value.columns:
        report.at_key((*place, "columns"), "text has one column, value; expected format json, or no columns")
    for name in value.columns:
        if name.lower() in RECORD_COLUMNS:
            report.at_key((*place, "columns", name), f"{name} is a column of every record; expected another")
    kinds = list_record_columns(value)
    if file.partition is None:
        report.at_key(path, f'missing key "partition" in {here}: the column with the event time of a record')
    elif kinds.get(file.partition) not in _TIMES:
        known = ", ".join(name for name, kind in kinds.items() if kind in _TIMES)
        report.at((*path, "partition"), f"expected a column of the records with a time ({known})")


def check_cluster(
    topic: KafkaTopic, path: tuple[str, ...], clusters: Sequence[str] | None, report: ProblemReport
) -> None:
    """Report a cluster that errata.yaml does not have."""
    if clusters is not None and topic.cluster not in clusters:
        known = ", ".join(clusters) or "there is none"
        report.at((*path, "kafka", "cluster"), f"expected a cluster of kafka in errata.yaml ({known})")


def check_topic(
    file: InputForm, grain: Grain, path: tuple[str, ...], clusters: Sequence[str] | None, report: ProblemReport
) -> None:
    """Report what cannot be read by offsets."""
    assert file.kafka is not None  # noqa: S101 - only such inputs come here
    check_cluster(file.kafka, path, clusters, report)
    for key in ("reference", "version"):
        if getattr(file, key):
            report.at_key((*path, key), f'the key "{key}" was refused in {".".join(path)}; a topic has no versions')
    if file.complete is not None:
        report.at_key((*path, "complete"), f'the key "complete" was refused in {".".join(path)}; a topic has no marker')
    if file.value is not None:
        report.at_key((*path, "value"), f'the key "value" was refused in {".".join(path)}; it is kafka.value')
    if not grain.is_time:
        report.at(path, "offsets are found by time; expected a target by hour, day, month or year", found=False)
    check_value(file, file.kafka.value, path, report)
