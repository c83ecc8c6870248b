"""The view of accepted versions: for every partition the one version that is accepted now, as SQL. Pure.

Partitions of one version that follow each other are one range, so the text stays short and readers prune by it. A view
that readers use instead of the target shows the target's own rows for every other partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.model.beside import VERSION
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, fold, shift, start_of, value_of

__all__ = ["accepted_sql", "swapped_sql", "within"]


def accepted_sql(versions: str, target: TargetPin, columns: Sequence[str], accepted: Mapping[str, int]) -> str:
    """``SELECT`` of these columns from the table of versions; a partition that nothing is accepted of has no rows."""
    by_version: dict[int, list[str]] = {}
    for partition, number in accepted.items():
        by_version.setdefault(number, []).append(partition)
    terms = [
        f"({_quoted(VERSION)} = {number} AND ({within(target, by_version[number])}))" for number in sorted(by_version)
    ]
    selected = ", ".join(map(_quoted, columns))
    where = " OR ".join(terms) or "false"
    return f"SELECT {selected} FROM {_name(versions)} WHERE {where}"  # noqa: S608


def swapped_sql(versions: str, target: TargetPin, columns: Sequence[str], accepted: Mapping[str, int]) -> str:
    """The target with accepted partitions in place of its own; rows of a NULL partition are told apart as well."""
    rest = f"SELECT {', '.join(map(_quoted, columns))} FROM {_name(target.table)}"  # noqa: S608
    if not accepted:
        return rest
    outside = f"NOT ({within(target, list(accepted))})"
    if NULL not in accepted:
        outside = f"{outside} OR {_quoted(target.column)} IS NULL"
    return f"{accepted_sql(versions, target, columns, accepted)} UNION ALL {rest} WHERE {outside}"


def within(target: TargetPin, partitions: Sequence[str]) -> str:
    """The condition that a row is of one of these partitions, for readers who prune by it."""
    column = _quoted(target.column)
    terms = [f"{column} IS NULL"] if NULL in partitions else []
    named = [name for name in partitions if name != NULL]
    if not target.grain.is_time:
        literals = [_literal(target, value_of(name) or "") for name in sorted(named)]
        return " OR ".join([*terms, *([f"{column} IN ({', '.join(literals)})"] if literals else [])])
    for first, last in fold(target.grain, named):
        if target.column_type == "string":
            terms.append(f"{column} BETWEEN {_text(first)} AND {_text(last)}")
        else:
            low, high = _moment(target, first), _moment(target, shift(target.grain, last, 1))
            terms.append(f"({column} >= {low} AND {column} < {high})")
    return " OR ".join(terms)


def _moment(target: TargetPin, partition: str) -> str:
    moment = start_of(target.grain, partition)
    if target.column_type == "date":
        return f"DATE'{moment:%Y-%m-%d}'"
    if target.column_type == "timestamptz":
        return f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S}+00:00'"
    return f"TIMESTAMP_NTZ'{moment:%Y-%m-%d %H:%M:%S}'"


def _literal(target: TargetPin, value: str) -> str:
    match target.column_type:
        case "int" | "long":
            return str(int(value))
        case "date":
            return f"DATE{_text(value)}"
        case _:
            return _text(value)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    # readers' sessions put ${env:NAME} into SQL, also inside literals
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def _name(table: str) -> str:
    return ".".join(map(_quoted, table.split(".")))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
