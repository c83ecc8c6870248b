"""Check that an input's eras cover everything a run reads, using the real schemas of files and tables. Pure.

Every file of every partition, look-back included, must fall into exactly one era, and that era must deliver every
declared column. Gaps are reported with partitions, file and column; nothing is filled in silently. For a table every
partition that will be read is checked, even if its metadata shows no rows there, because files of an older partition
spec may hold rows of any partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.partition import WHOLE, Grain, format_ranges
from errata.model.product import Input
from errata.model.product.eras import Era, find_matching_eras, resolve_columns
from errata.ports.tables import InputState

_SHOWN = 8
_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Coverage:
    """Result of the check: problems, or the eras of each partition and the columns they deliver."""

    problems: tuple[str, ...] = ()
    era_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Occurrence:
    """Partitions that share a problem, and the first file that has it."""

    partitions: list[str]
    place: str


def check_coverage(
    source: Input, facts: InputState, grain: Grain, partition_type: str | None, asked: Sequence[str] = ()
) -> Coverage:
    """Check one input over the partitions to read; without declared columns only unreadable files are reported."""
    broken = [f"{source.name}: {path} cannot be read: {why}" for path, why in sorted(facts.unreadable.items())]
    if broken or not source.columns:
        return Coverage(tuple(broken))
    columns = _list_columns(source, facts, partition_type)
    from_path = source.partition if facts.kind == "files" else None
    # many files share a schema, so each combination of schema and eras is checked once
    known: dict[tuple[int, tuple[str, ...]], tuple[str, ...]] = {}
    era_of: dict[str, set[str]] = {}
    found: dict[str, _Occurrence] = {}
    for partition, place, number in _iterate_files(facts, asked):
        schema = facts.schemas[number]
        eras = find_matching_eras(source.eras, partition, schema)
        if len(eras) == 1:
            era_of.setdefault(partition, set()).add(eras[0].name)
        key = (number, tuple(era.name for era in eras))
        if key not in known:
            known[key] = _find_problems(source, eras, schema, columns, from_path)
        for problem in known[key]:
            first = found.setdefault(problem, _Occurrence([], place))
            first.partitions.append(partition)
    problems = [f"{source.name}: {_format_location(grain, one)}: {problem}" for problem, one in found.items()]
    return Coverage(tuple(problems), {name: tuple(sorted(eras)) for name, eras in era_of.items()}, columns)


def _list_columns(source: Input, facts: InputState, partition_type: str | None) -> dict[str, str]:
    """Columns that the transform sees: the declared ones plus the partition column."""
    kind = facts.column_type or partition_type
    if source.partition is None or source.partition in source.columns or kind is None:
        return dict(source.columns)
    return {**source.columns, source.partition: kind}


def _iterate_files(facts: InputState, asked: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield (partition, file or table, schema number) for everything that is read."""
    if facts.log is not None:
        for number, schema in enumerate(facts.schemas):
            yield WHOLE, f"{facts.location}, rows with the columns {', '.join(list(schema)[:_COLUMNS])}", number
        return
    if facts.files is not None:
        for partition, files in facts.files.items():
            for file in files:
                yield partition, file.path, file.schema
        return
    place = f"{facts.location} at snapshot {facts.snapshot_id}"
    partitions = () if facts.whole is not None else dict.fromkeys((*asked, *facts.partitions))
    for partition in partitions or (WHOLE,):
        yield partition, place, 0


def _find_problems(
    source: Input, eras: Sequence[Era], schema: Mapping[str, str], columns: Mapping[str, str], from_path: str | None
) -> tuple[str, ...]:
    if not eras:
        names = ", ".join(list(schema)[:_COLUMNS]) + (", …" if len(schema) > _COLUMNS else "")
        known = ", ".join(era.name for era in source.eras)
        return (f"no era covers it; expected one of {known}, found columns {names}",)
    if len(eras) > 1:
        return (f"eras {' and '.join(era.name for era in eras)} both cover it; expected exactly one",)
    deliveries = resolve_columns(eras[0], columns, schema, from_path)
    said = f"era {eras[0].name}, " if source.eras else ""
    return tuple(f"{said}column {one.problem}" for one in deliveries if one.problem)


def _format_location(grain: Grain, found: _Occurrence) -> str:
    partitions = dict.fromkeys(name for name in found.partitions if name != WHOLE)
    shown = format_ranges(grain, partitions, _SHOWN) if partitions else ""
    first = "first " if len(found.partitions) > 1 and shown else ""
    return f"{shown} ({first}{found.place})" if shown else found.place
