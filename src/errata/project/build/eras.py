"""Build eras and row rules from a product file, and check that their keys agree with each other. Pure.

Whether the eras cover what a run reads is checked at plan time against real schemas; here are the errors that no source
could fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from errata.errors import UsageError
from errata.model.partition import Grain, parse_partition
from errata.model.product import Input
from errata.model.product.eras import Era, RowLimits
from errata.model.types import is_assignable, is_valid_literal
from errata.project.forms import InputForm
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.problem_texts import hint_nearest

_TAKEN = ("cast ", "text ", "line ")
"""Prefixes reserved for the reasons of values that failed to convert."""
_OWN_PREFIX = "__errata"


def build_eras(file: Input, grain: Grain, place: Path, report: ProblemReport) -> tuple[Era, ...]:
    """The eras of an input, named and in file order."""
    for name in file.columns:
        if name.startswith(_OWN_PREFIX):
            report.at((*place, "columns", name), f"names that begin with {_OWN_PREFIX} are taken", found=False)
    if file.eras and not file.columns:
        report.at_key((*place, "columns"), f'missing key "columns" in {".".join(map(str, place))}, which eras need')
        return ()
    eras = tuple(_build_era(n, given, file, grain, (*place, "eras", n), report) for n, given in enumerate(file.eras))
    seen: set[str] = set()
    for n, era in enumerate(eras):
        if era.name in seen:
            report.at((*place, "eras", n), f'expected a unique name; "{era.name}" is taken', found=False)
        seen.add(era.name)
        for other in eras[:n]:
            if _is_overlapping(era, other):
                said = f"{era.name} and {other.name} cover the same partitions; expected spans apart, or has and lacks"
                report.at((*place, "eras", n), said, found=False)
    return eras


def _build_era(n: int, given: Era, file: Input, grain: Grain, place: Path, report: ProblemReport) -> Era:
    first, last = (
        _parse_bound(text, grain, file, (*place, key), report)
        for key, text in (("from", given.first), ("until", given.last))
    )
    if first is not None and last is not None and last < first:
        report.at((*place, "until"), f"expected {first} or later")
    for column in sorted({*given.has} & {*given.lacks}):
        report.at((*place, "lacks"), f"{column} is under has as well", found=False)
    _check_columns(given, file, place, report)
    return replace(given, name=given.name or f"era-{n + 1}", first=first, last=last)


def _parse_bound(text: str | None, grain: Grain, file: Input, place: Path, report: ProblemReport) -> str | None:
    if text is None:
        return None
    if file.partition is None or not grain.is_time:
        why = "the key partition beside it" if grain.is_time else "has or lacks, because values have no order"
        report.at(place, f"a span of partitions needs {why}")
        return None
    try:
        return parse_partition(grain, text)
    except UsageError:
        report.at(place, f"expected a partition of grain {grain}")
        return None


def _check_columns(given: Era, file: Input, place: Path, report: ProblemReport) -> None:
    """Check that an era makes only declared columns, each once, and leaves the partition column as it is."""
    made: Mapping[str, Mapping[str, object]] = {
        "rename": {new: old for old, new in given.rename.items()},
        "cast": given.cast,
        "default": given.default,
    }
    if len(made["rename"]) < len(given.rename):
        report.at((*place, "rename"), "expected each new name once", found=False)
    for key, columns in made.items():
        for column in columns:
            at = (*place, key) if key == "rename" else (*place, key, column)
            if column == file.partition:
                report.at(at, f"{column} is the partition column, which is read as it is", found=False)
            elif column not in file.columns:
                report.at(
                    at, f"expected a column of columns, found {column}{hint_nearest(column, file.columns)}", found=False
                )
    _check_values(given, file, place, report)


def _check_values(given: Era, file: Input, place: Path, report: ProblemReport) -> None:
    """Check that casts end in the declared type, defaults have it, and dropped columns are not used."""
    for column, kind in given.cast.items():
        if not is_assignable(kind, file.columns.get(column, kind)):
            report.at((*place, "cast", column), f"expected {file.columns[column]}, the type in columns")
        if column in given.default:
            report.at((*place, "default", column), "is cast as well; a default is of the right type already")
    for column, literal in given.default.items():
        if not is_valid_literal(literal, file.columns.get(column, "string")):
            report.at((*place, "default", column), f"expected a value of type {file.columns[column]}, or null")
    for n, column in enumerate(given.drop):
        if column == file.partition or column in given.rename:
            why = "the partition column, which is read as it is" if column == file.partition else "renamed as well"
            report.at((*place, "drop", n), f"{column} is {why}", found=False)


def _is_overlapping(one: Era, other: Era) -> bool:
    """Whether two eras without column conditions share a partition; with conditions, only real files can tell."""
    if one.has or one.lacks or other.has or other.lacks:
        return False
    starts, ends = (one.first or "", other.first or ""), (one.last or "~", other.last or "~")
    return max(starts) <= min(ends)


def check_row_rules(file: Input, place: Path, report: ProblemReport) -> None:
    """Check that each row rule of an input has a name of its own."""
    seen: set[str] = set()
    for n, rule in enumerate(file.rows):
        if rule.name in seen:
            report.at((*place, "rows", n), f'expected a unique name; "{rule.name}" is taken', found=False)
        if rule.name.startswith(_TAKEN):
            report.at((*place, "rows", n, "name"), 'names that begin with "cast ", "text " or "line " are taken')
        seen.add(rule.name)


def build_row_limits(inputs: Mapping[str, InputForm], report: ProblemReport) -> tuple[RowLimits, ...]:
    """Limits on quarantined rows, by input."""
    return tuple(_build_limits(name, given.quarantine, report) for name, given in inputs.items() if given.quarantine)


def _build_limits(name: str, limits: RowLimits, report: ProblemReport) -> RowLimits:
    place = ("inputs", name)
    if limits.warn is None and limits.block is None:
        report.at((*place, "quarantine"), "expected warn or block or both", found=False)
    if limits.warn is not None and limits.block is not None:
        same_unit = limits.warn.endswith("%") == limits.block.endswith("%")
        if same_unit and Decimal(limits.warn.rstrip("%")) > Decimal(limits.block.rstrip("%")):
            report.at((*place, "quarantine", "warn"), "expected no more than block")
    return replace(limits, name=name)
