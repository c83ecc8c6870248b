"""Report rows in years that no date can name: which partitions, where, and how to remove them. Pure."""

from __future__ import annotations

from errata.model.partition_sql import quote_table, quoted
from errata.ports.tables import TargetState
from errata.text.numbers import plural

_SHOWN = 3
_EDGES = {
    "date": ("DATE'0001-01-01'", "DATE'10000-01-01'"),
    "timestamp": ("TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'10000-01-01 00:00:00'"),
    "timestamptz": ("TIMESTAMP'0001-01-01 00:00:00+00:00'", "TIMESTAMP'10000-01-01 00:00:00+00:00'"),
}


def describe_unnameable(target: TargetState, column: str) -> str:
    """One sentence on partitions outside the years 0001 to 9999, with SQL that removes them; empty without any."""
    found = target.unnameable
    kind = next((known.type for known in target.columns if known.name == column), "")
    if not found or kind not in _EDGES:
        return ""
    names = sorted(found)
    shown = ", ".join(f"{name} (in {found[name]})" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    first, end = _EDGES[kind]
    is_late = [name.startswith("+") for name in names]
    edges = [f"{quoted(column)} >= {end}"] * any(is_late) + [f"{quoted(column)} < {first}"] * (not all(is_late))
    table = quote_table(target.table)
    delete = f"DELETE FROM {table} WHERE {' OR '.join(edges)}"  # noqa: S608 - for people to run
    be = "is" if len(names) == 1 else "are"
    return (
        f"{plural(len(names), 'partition')} outside the years 0001 to 9999 cannot be chosen and {be} left alone: "
        f"{shown}{more}; to remove these rows: {delete}"
    )
