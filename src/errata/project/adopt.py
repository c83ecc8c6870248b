"""A product file drafted from a table as it is: text that loads, with comments on what only a person knows. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from errata.errors import UsageError
from errata.model.product import LINEAGE_COLUMNS
from errata.project.check import add_columns
from errata.project.ports import PartitionFacts, TableFacts

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBERS = ("int", "long", "float", "double", "decimal")


def draft_product(facts: TableFacts, *, owner: str = "CHANGE_ME") -> str:
    """The text of ``products/<table>.yaml``; refused when the table cannot be a product at all."""
    catalog, *names = facts.table.split(".")
    if len(names) < 2 or not all(_NAME.fullmatch(part) for part in (catalog, *names)):
        raise UsageError(
            f"table {facts.table!r} was refused; expected catalog.namespace.table of letters, digits and _"
        )
    field = _unit(facts)
    key = _key(facts)
    sections = (
        _head(facts, names, owner),
        _target(facts, field, key),
        _transform(names[-1]),
        _inputs(catalog, field),
        "publish: {mode: replace_partitions, rollback_window: 30d}",
        _checks(key),
        _compare(facts, field, key),
        "# protect: {recent: 1d, locked: []}   # partitions that need a named override: too new, or closed books",
        _lineage(facts),
        "consumers: []   # who reads this table: they are named in every plan",
    )
    return "\n".join(sections) + "\n"


def _unit(facts: TableFacts) -> PartitionFacts:
    """The field to correct by: one of time before one by value."""
    usable = [f for f in facts.partition_fields if f.grain is not None and _NAME.fullmatch(f.column)]
    if not usable:
        spec = ", ".join(f"{field.transform}({field.column})" for field in facts.partition_fields) or "nothing"
        raise UsageError(
            f"table {facts.table} was refused; expected a partition field by hour, day, month, year or a date, text or "
            f"whole-number column; found {spec}",
            hint="add a partition field to the table, for example: ALTER TABLE … ADD PARTITION FIELD days(ts)",
        )
    return min(usable, key=lambda field: not (field.grain is not None and field.grain.is_time))


def _key(facts: TableFacts) -> list[str]:
    return [column for column in facts.identifier_columns if _NAME.fullmatch(column)]


def _head(facts: TableFacts, names: Sequence[str], owner: str) -> str:
    columns = "\n".join(f"#   {_printable(column.name)}: {_printable(column.type)}" for column in facts.columns)
    return (
        f"# Drafted by `errata adopt {facts.table}`. Go through every line that says CHANGE_ME, then: errata check\n"
        f"# Columns of the table:\n{columns}\n"
        f"product: {_word('.'.join(names))}\n"
        f"owner: {json.dumps(owner)}   # the team that answers for these numbers\n"
        'description: ""'
    )


def _target(facts: TableFacts, field: PartitionFacts, key: Sequence[str]) -> str:
    said = "" if key else "   # CHANGE_ME: the columns that name a row; diffs match old and new rows by them"
    return (
        "target:\n"
        f"  table: {facts.table}\n"
        f"  partition: {{column: {_word(field.column)}, grain: {field.grain}}}   # {field.transform}({field.column})\n"
        f"  key: {_list(key)}{said}"
    )


def _transform(table: str) -> str:
    return (
        f"# CHANGE_ME: a function build(ctx, source) -> DataFrame in transforms/{table}.py\n"
        f'transform: {{call: "transforms.{table}:build", version: "0.1.0", config: {{}}}}'
    )


def _inputs(catalog: str, field: PartitionFacts) -> str:
    column = _word(field.column)
    return (
        "inputs:   # CHANGE_ME: what the transform reads, by parameter name\n"
        f"  source: {{table: {catalog}.CHANGE_ME.CHANGE_ME, partition: {column}}}\n"
        f'  # files: {{files: "s3://bucket/path/{field.column}={{{field.column}}}/*.parquet", partition: {column}}}\n'
        f"  # rates: {{table: {catalog}.CHANGE_ME.CHANGE_ME, reference: corrected_truth}}   # read whole"
    )


def _checks(key: Sequence[str]) -> str:
    lines = ["checks:", "  - {metric: rowCount, mustBeGreaterThan: 0}"]
    lines += [f"  - {{metric: nullValues, column: {_word(column)}, mustBe: 0}}" for column in key]
    if key:
        lines.append(f"  - {{metric: duplicateValues, columns: {_list(key)}, mustBe: 0}}")
    lines += [
        "# reconcile:   # totals of an input that the output must keep",
        '#   - {name: total, input: source, source: "sum(amount)", target: "sum(amount)", tolerance: 0}',
    ]
    return "\n".join(lines)


def _compare(facts: TableFacts, field: PartitionFacts, key: Sequence[str]) -> str:
    numbers = [
        column.name
        for column in facts.columns
        if column.type.startswith(_NUMBERS) and _NAME.fullmatch(column.name) and column.name not in (field.column, *key)
    ]
    lines = ["# compare:   # the candidate against what was accepted before"]
    lines += [f'#   - {{metric: "sum({name})", warn: 5%, block: 60%}}' for name in numbers or ["amount"]]
    return "\n".join(lines)


def _lineage(facts: TableFacts) -> str:
    there = {column.name for column in facts.columns}
    missing = [column for column in LINEAGE_COLUMNS if column not in there]
    if not missing:
        return "lineage_columns: true"
    if len(missing) < len(LINEAGE_COLUMNS):
        return f"lineage_columns: {_list(column for column in LINEAGE_COLUMNS if column in there)}"
    return f"# true, once the table has them: {add_columns(facts.table, missing)}\nlineage_columns: false"


def _word(text: str) -> str:
    """A name as a YAML scalar that stays text."""
    return f'"{text}"' if text.lower() in ("null", "true", "false") else text


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(_word(word) for word in words)}]"


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
