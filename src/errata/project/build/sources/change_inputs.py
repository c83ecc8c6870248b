"""Change logs as inputs: keys that belong together, columns and eras, and the input with the transactions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.model.change_log.declaration import (
    BEFORE,
    CHANGES,
    READING_COLUMNS,
    ChangeCapture,
    list_change_columns,
)
from errata.model.change_log.log_positions import parse_position
from errata.model.kafka.declaration import RecordValue
from errata.model.partition import Grain
from errata.model.product import Input, Project
from errata.model.product.eras import Era, eras_or_default
from errata.project.forms import InputForm
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import hint_nearest

_REASON = (
    "without the END messages only the order of sending is known, not which changes were committed at a position; "
    "set provide.transaction.metadata=true in the connector"
)


def check_change_log(
    name: str,
    file: InputForm,
    grain: Grain,
    project: Project | None,
    others: Sequence[str],
    report: ProblemReport,
) -> None:
    """Report what cannot be read as a change log."""
    declared, path = file.cdc, ("inputs", name)
    assert declared is not None  # noqa: S101 - only such inputs come here
    here = (*path, "cdc")
    if file.files is not None:
        report.at_key((*path, "files"), "change messages are in a topic, a recording or a table; expected one of them")
    if declared.transactions is None:
        report.at_key(here, f'missing key "transactions" in {".".join(here)}: {_REASON}')
    for key in ("reference", "version", "complete", "grain"):
        if getattr(file, key):
            report.at_key((*path, key), f'the key "{key}" was refused in {".".join(path)}; a change log has none')
    if file.kafka is not None and file.kafka.value != RecordValue():
        report.at_key(
            (*path, "kafka", "value"), "change messages have the columns of the input; expected columns beside cdc"
        )
    if f"{name}_transactions" in others:
        report.at(path, f"its transactions are the input {name}_transactions; expected another name", found=False)
    _check_position(declared, here, report)
    _check_transactions(file, declared, project, here, report)
    _check_columns(file, declared, path, report)
    if declared.since is not None and (declared.reading != CHANGES or file.partition is None):
        report.at((*here, "since"), "expected as: changes, and the key partition beside cdc")
    for n, era in enumerate(file.eras):
        if era.is_ranged:
            said = "rows of a change log have no span of partitions; expected has and lacks"
            report.at((*path, "eras", n), said, found=False)
    if file.partition is not None and not grain.is_time and file.partition in READING_COLUMNS[declared.reading]:
        report.at((*path, "partition"), "a position or a time is no partition by value; expected a column of the row")


def _check_position(declared: ChangeCapture, here: tuple[str, ...], report: ProblemReport) -> None:
    try:
        parse_position(declared.at)
    except ValueError:
        report.at((*here, "at"), "expected newest, a position such as 0/1970FA8, or an instant with its zone")


def _check_transactions(
    file: InputForm, declared: ChangeCapture, project: Project | None, here: tuple[str, ...], report: ProblemReport
) -> None:
    """Report ends of transactions that are in no place of the project."""
    place = declared.transactions
    if place is None or project is None:
        return
    if file.recording is not None and place not in project.sources:
        known = ", ".join(project.sources) or "none"
        near = hint_nearest(place, project.sources)
        report.at((*here, "transactions"), f"expected a source of errata.yaml, as the changes ({known}){near}")
    if file.table is not None and (place.count(".") < 2 or place.partition(".")[0] not in project.catalogs):
        known = ", ".join(project.catalogs)
        report.at((*here, "transactions"), f"expected a table of a catalog in errata.yaml, as the changes ({known})")


def _check_columns(file: InputForm, declared: ChangeCapture, path: tuple[str, ...], report: ProblemReport) -> None:
    if not file.columns:
        report.at_key((*path, "columns"), f'missing key "columns" in {".".join(path)}, which a change log needs')
        return
    taken = READING_COLUMNS[declared.reading]
    for name in file.columns:
        is_shadow = name.startswith(BEFORE) and name.removeprefix(BEFORE) in file.columns
        if name in taken or (declared.reading == CHANGES and is_shadow):
            report.at_key((*path, "columns", name), f"{name} is a column of every {declared.reading} row")
    for n, name in enumerate(declared.key):
        if name not in file.columns:
            report.at((*path, "cdc", "key", n), f"expected a column of columns ({', '.join(file.columns)})")
    known = list_change_columns(declared, file.columns)
    if file.partition is not None and (file.partition not in known or file.partition.startswith(BEFORE)):
        report.at((*path, "partition"), f"expected a column of the rows ({', '.join(known)})")


def build_change_input(made: Input, columns: Mapping[str, str]) -> Input:
    """The input with every column that its reading has; eras give values before a change what they give the row."""
    declared = made.cdc
    assert declared is not None  # noqa: S101 - only such inputs come here
    eras = tuple(_widen_era(_add_casts(era, columns), declared) for era in eras_or_default(made.eras))
    return replace(made, columns=list_change_columns(declared, columns), eras=eras)


def _add_casts(era: Era, columns: Mapping[str, str]) -> Era:
    casts = {name: kind for name, kind in columns.items() if kind != "string" and name not in (*era.cast, *era.default)}
    return replace(era, cast={**era.cast, **casts})


def _widen_era(era: Era, declared: ChangeCapture) -> Era:
    if declared.reading != CHANGES:
        return era
    return replace(
        era,
        rename={**era.rename, **{f"{BEFORE}{old}": f"{BEFORE}{new}" for old, new in era.rename.items()}},
        cast={**era.cast, **{f"{BEFORE}{name}": kind for name, kind in era.cast.items()}},
        default={**era.default, **{f"{BEFORE}{name}": value for name, value in era.default.items()}},
        drop=(*era.drop, *(f"{BEFORE}{name}" for name in era.drop)),
    )


def build_transactions_input(source: Input) -> Input:
    """The messages with the ends of transactions: an input that is read first, and not by the transform."""
    assert source.cdc is not None  # noqa: S101 - only such inputs come here
    place = source.cdc.transactions or ""
    return Input(
        name=f"{source.name}_transactions",
        table=place if source.table else None,
        recording=place if source.recording else None,
        kafka=replace(source.kafka, topic=place) if source.kafka else None,
        transactions_of=source.name,
    )
