"""Compare partitions by their rows, where neither files nor commits show whether they changed.

Rows are compared over the planned columns, which do not cover columns that the table gained since. Values in those were
written by another writer, so a partition counts as unchanged only while they hold nothing but their default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from errata.errors import RunExpired
from errata.model.table import find_schema_drift
from errata.ports.publish import ContentPort, TableVersion

if TYPE_CHECKING:
    from errata.publishing.replacement import Replacement


@dataclass(frozen=True, slots=True)
class ContentComparison:
    """Partitions whose rows are unchanged, and for some others a note about their columns."""

    same: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)


def compare_content(
    order: Replacement, version: TableVersion, partitions: Sequence[str], content: ContentPort
) -> ContentComparison:
    """Compare main's head with the measured content, or else with the snapshots of the expected files."""
    target, head = order.target, version.snapshot_id
    since = find_schema_drift(target, version.columns(target.schema_id), version.columns())
    filled = content.filled(target, head, partitions, since.added) if since.added else {}
    told = {
        name: f"{_format_columns(filled[name])}, added since, holds values" for name in partitions if name in filled
    }
    rest = [name for name in partitions if name not in filled]
    before = order.known_content or _read_base_content(order, rest, content)
    if not rest or not before:
        return ContentComparison((), told)
    now = content.content(target, head, rest, [since.names.get(name, name) for name in order.content_columns])
    same = tuple(name for name in rest if before.get(name) == now[name])
    if since.dropped:
        gone = f"{_format_columns(since.dropped)} was dropped since, so its rows cannot be compared"
        told |= {name: gone for name in rest if name not in same}
    return ContentComparison(same, told)


def _read_base_content(order: Replacement, partitions: Sequence[str], content: ContentPort) -> dict[str, str]:
    found: dict[str, str] = {}
    for base, names in order.group_by_base(partitions).items():
        with suppress(RunExpired):  # content that cannot be compared does not count as unchanged
            found |= content.content(order.target, base, names, order.content_columns) if base else {}
    return found


def _format_columns(columns: Sequence[str]) -> str:
    return f"column {', '.join(columns)}"
