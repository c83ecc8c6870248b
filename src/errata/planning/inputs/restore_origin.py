"""Restore from somewhere else than the target: another table at a snapshot, or recorded rows. Pure.

Rows are matched by the names of columns. Every column of the target has to be there, except for lineage columns, which
are NULL then: a column that is missing would be emptied silently otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from errata.model.manifest import Restored
from errata.model.partition import Grain, format_ranges
from errata.model.product import Input, Product
from errata.model.product.eras import RowLimits
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.restore import INPUT, format_instant, to_restore_product
from errata.ports.tables import Column, InputState
from errata.text.numbers import format_moment

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RestoreOrigin:
    """Where the rows of a restore come from."""

    location: str  # a table, or recording:SOURCE
    asked: str  # as the requester named it
    columns: Mapping[str, str]  # of the target → of the origin, at its snapshot
    missing: tuple[str, ...] = ()  # lineage columns that it lacks
    problems: tuple[str, ...] = ()  # why its rows do not fit


def match_columns(
    wanted: Sequence[Column], lineage: Collection[str], there: Mapping[str, str], then: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Columns of the target and their names there, lineage columns that are missing, and why rows do not fit.

    ``there`` has the types by current name, ``then`` the names at the snapshot by current name.
    """
    columns, missing, problems = {}, [], []
    for column in wanted:
        kind = there.get(column.name)
        if kind is None or column.name not in then:
            if column.name in lineage and not column.required:
                missing.append(column.name)
            else:
                problems.append(f"it has no column {column.name}")
        elif kind != column.type:
            problems.append(f"its column {column.name} is {kind}, and the target's is {column.type}")
        else:
            columns[column.name] = then[column.name]
    return columns, tuple(missing), tuple(problems)


def to_origin_product(product: Product, source: Input, columns: Mapping[str, str]) -> Product:
    """The product with the origin as its only input; every row of it has to be used."""
    limits = (RowLimits(INPUT, block="0"),) if source.columns else ()
    made = to_restore_product(product, columns)
    return replace(made, inputs=(replace(source, subjects=made.inputs[0].subjects),), row_limits=limits)


def build_origin_record(origin: RestoreOrigin, facts: InputState) -> Restored:
    """The manifest's record of what is restored."""
    at = format_instant(facts.newest_ms or 0)
    return Restored(facts.snapshot_id or "", at, origin.asked, origin.columns, origin.location)


def check_origin(
    origin: RestoreOrigin, facts: InputState, grain: Grain, partitions: Sequence[str]
) -> Iterator[GuardrailResult]:
    """Why the origin cannot be restored from, or what the restore puts back."""
    if origin.problems:
        more = f" and {len(origin.problems) - _SHOWN} more" if len(origin.problems) > _SHOWN else ""
        text = f"{origin.location} does not fit the target: {'; '.join(origin.problems[:_SHOWN])}{more}"
        yield GuardrailResult("restore", "refuse", text, final=True)
        return
    empty = [name for name in partitions if not facts.partitions.get(name) or not facts.partitions[name].rows]
    if empty:
        told = f"{origin.location} has no rows of {format_ranges(grain, empty, _SHOWN)}: they would be empty afterwards"
        yield GuardrailResult("restore", "refuse", told, leave_out=frozenset(empty))
        return
    at = format_moment(format_instant(facts.newest_ms or 0))
    where = f"was at snapshot {facts.snapshot_id}, {at} UTC" if facts.snapshot_id else f"was recorded until {at} UTC"
    yield GuardrailResult("restore", "ok", f"as {origin.location} {where}; the gate compares every row with it")
    if origin.missing:
        told = f"{origin.location} has no column {', '.join(origin.missing)}: rows do not say which run made them"
        yield GuardrailResult("restore", "warn", told)
