"""Topics as inputs: keys that belong together, and the columns of their records. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.model.kafka.declaration import RECORD_COLUMNS, KafkaTopic
from errata.model.partition import Grain
from errata.model.product.eras import Era
from errata.project.forms import InputForm
from errata.project.problems import ProblemReport

_TIMES = ("date", "timestamp", "timestamptz")


def list_record_columns(topic: KafkaTopic) -> dict[str, str]:
    """Columns that the transform sees: those of the value, then those of the record."""
    value = topic.value.columns if topic.value.format == "json" else {"value": "string"}
    return {**value, **RECORD_COLUMNS}


def build_record_eras(topic: KafkaTopic) -> tuple[Era, ...]:
    """Fields of JSON are text until they are cast; a record whose field cannot be cast is quarantined."""
    return (
        Era(topic.value.format, cast={name: kind for name, kind in topic.value.columns.items() if kind != "string"}),
    )


def check_topic(
    file: InputForm, grain: Grain, path: tuple[str, ...], clusters: Sequence[str] | None, report: ProblemReport
) -> None:
    """Report what cannot be read by offsets."""
    assert file.kafka is not None  # noqa: S101 - only such inputs come here
    here, value = (*path, "kafka"), file.kafka.value
    if clusters is not None and file.kafka.cluster not in clusters:
        known = ", ".join(clusters) or "there is none"
        report.at((*here, "cluster"), f"expected a cluster of kafka in errata.yaml ({known})")
    for key in ("columns", "eras", "reference", "version"):
        if getattr(file, key):
            said = (
                "records have the columns of kafka.value" if key in ("columns", "eras") else "a topic has no versions"
            )
            report.at_key((*path, key), f'the key "{key}" was refused in {".".join(path)}; {said}')
    if file.complete is not None:
        report.at_key((*path, "complete"), f'the key "complete" was refused in {".".join(path)}; a topic has no marker')
    if value.format == "json" and not value.columns:
        report.at_key((*here, "value"), f'missing key "columns" in {".".join(here)}.value, which format json needs')
    if value.format == "text" and value.columns:
        report.at_key((*here, "value", "columns"), "text has one column, value; expected format json, or no columns")
    for name in value.columns:
        if name.lower() in RECORD_COLUMNS:
            report.at_key((*here, "value", "columns", name), f"{name} is a column of every record; expected another")
    if not grain.is_time:
        report.at(path, "offsets are found by time; expected a target by hour, day, month or year", found=False)
    kinds = list_record_columns(file.kafka)
    if file.partition is None:
        report.at_key(path, f'missing key "partition" in {".".join(path)}: the column with the event time of a record')
    elif kinds.get(file.partition) not in _TIMES:
        known = ", ".join(name for name, kind in kinds.items() if kind in _TIMES)
        report.at((*path, "partition"), f"expected a column of the records with a time ({known})")
