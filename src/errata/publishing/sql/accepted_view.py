"""SQL of the view of accepted versions: for every partition, the version that is currently accepted. Pure.

Adjacent partitions of one version are folded into a range, so the text stays short and readers can prune by it. A view
that readers use instead of the target shows the target's own rows for every other partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.model.manifest import TargetPin
from errata.model.partition import NULL
from errata.model.partition_sql import build_partition_filter, quote_table, quoted
from errata.model.side_tables import VERSION


def build_accepted_sql(versions: str, target: TargetPin, columns: Sequence[str], accepted: Mapping[str, int]) -> str:
    """``SELECT`` of these columns from the table of versions; partitions without an accepted version have no rows."""
    by_version: dict[int, list[str]] = {}
    for partition, number in accepted.items():
        by_version.setdefault(number, []).append(partition)
    terms = [
        f"({quoted(VERSION)} = {number} AND ({_build_filter(target, by_version[number])}))"
        for number in sorted(by_version)
    ]
    selected = ", ".join(map(quoted, columns))
    where = " OR ".join(terms) or "false"
    return f"SELECT {selected} FROM {quote_table(versions)} WHERE {where}"  # noqa: S608


def build_swapped_sql(versions: str, target: TargetPin, columns: Sequence[str], accepted: Mapping[str, int]) -> str:
    """``SELECT`` of the target with accepted partitions in place of its own."""
    rest = f"SELECT {', '.join(map(quoted, columns))} FROM {quote_table(target.table)}"  # noqa: S608
    if not accepted:
        return rest
    outside = f"NOT ({_build_filter(target, list(accepted))})"
    if NULL not in accepted:  # NOT (…) is NULL for rows of the NULL partition, which would drop them
        outside = f"{outside} OR {quoted(target.column)} IS NULL"
    return f"{build_accepted_sql(versions, target, columns, accepted)} UNION ALL {rest} WHERE {outside}"


def _build_filter(target: TargetPin, partitions: Sequence[str]) -> str:
    return build_partition_filter(target.column, target.column_type, target.grain, partitions)
