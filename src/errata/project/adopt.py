"""Draft a product file from an existing table: text that loads, with comments on what only a person knows. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from errata.errors import UsageError
from errata.model.partition_sql import quoted
from errata.model.product import LINEAGE_BY_DEFAULT, LINEAGE_COLUMNS
from errata.ports.tables import PartitionField, TableDescription
from errata.project.check import build_add_columns_sql

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBERS = ("int", "long", "float", "double", "decimal")


def draft_product(facts: TableDescription, *, owner: str = "CHANGE_ME") -> str:
    """Text of ``products/<table>.yaml``; refused if the table cannot be a product at all."""
    refuse_names(facts.table)
    catalog, *names = facts.table.split(".")
    field = _choose_partition_field(facts)
    key = _list_key_columns(facts)
    sections = (
        _draft_head(facts, names, owner),
        _draft_target(facts, field, key),
        _draft_transform(names[-1], facts),
        _draft_inputs(catalog, field),
        "publish: {mode: replace_partitions, rollback_window: 30d}",
        _draft_checks(key),
        _draft_compare(facts, field, key),
        "# protect: {recent: 1d, locked: []}   # partitions that need a named override: too new, or closed books",
        _draft_lineage(facts),
    )
    return "\n".join(sections) + "\n"


def refuse_names(table: str) -> None:
    """Refuse the name of a table that no product can have."""
    catalog, *names = table.split(".")
    if len(names) < 2 or not all(_NAME.fullmatch(part) for part in (catalog, *names)):
        raise UsageError(f"table {table!r} was refused; expected catalog.namespace.table of letters, digits and _")


def _choose_partition_field(facts: TableDescription) -> PartitionField:
    """The field to correct by: a time field rather than a field by value."""
    usable = [f for f in facts.partition_fields if f.grain is not None and _NAME.fullmatch(f.column)]
    if not usable:
        spec = ", ".join(f"{field.transform}({field.column})" for field in facts.partition_fields) or "nothing"
        raise UsageError(
            f"table {facts.table} was refused; expected a partition field by hour, day, month, year or a date, text or "
            f"whole-number column; found {spec}",
            hint="add a partition field to the table, for example: ALTER TABLE … ADD PARTITION FIELD days(ts)",
        )
    return min(usable, key=lambda field: not (field.grain is not None and field.grain.is_time))


def _list_key_columns(facts: TableDescription) -> list[str]:
    return [column for column in facts.identifier_columns if _NAME.fullmatch(column)]


def _draft_head(facts: TableDescription, names: Sequence[str], owner: str) -> str:
    columns = "\n".join(f"#   {_to_printable(column.name)}: {_to_printable(column.type)}" for column in facts.columns)
    return (
        f"# Drafted by `errata adopt {facts.table}`. Go through every line that says CHANGE_ME, then: errata check\n"
        f"# Columns of the table:\n{columns}\n"
        f"product: {_quote_word('.'.join(names))}\n"
        f"owner: {json.dumps(owner)}   # the team that answers for these numbers\n"
        'description: ""'
    )


def _draft_target(facts: TableDescription, field: PartitionField, key: Sequence[str]) -> str:
    said = "" if key else "   # CHANGE_ME: the columns that name a row; diffs match old and new rows by them"
    return (
        "target:\n"
        f"  table: {facts.table}\n"
        f"  partition: {{column: {_quote_word(field.column)}, grain: {field.grain}}}   # "
        f"{field.transform}({field.column})\n"
        f"  key: {_format_list(key)}{said}"
    )


def _draft_transform(table: str, facts: TableDescription) -> str:
    names = [column.name for column in facts.columns if column.name not in LINEAGE_COLUMNS]
    columns = ", ".join(_to_printable(name if _NAME.fullmatch(name) else quoted(name)) for name in names)
    draft = f"SELECT {columns} FROM source"  # noqa: S608 - text for a person
    return (
        f"# CHANGE_ME: one query over the inputs in transforms/{table}.sql, which returns the columns of the table:\n"
        f"#   {draft}\n"
        f'transform: {{sql: transforms/{table}.sql, version: "0.1.0"}}\n'
        f"# or a function build(ctx, source) -> DataFrame in transforms/{table}.py:\n"
        f'# transform: {{call: "transforms.{table}:build", version: "0.1.0", config: {{}}}}'
    )


def _draft_inputs(catalog: str, field: PartitionField) -> str:
    column = _quote_word(field.column)
    return (
        "inputs:   # CHANGE_ME: what the transform reads, by parameter name\n"
        f"  source: {{table: {catalog}.CHANGE_ME.CHANGE_ME, partition: {column}}}\n"
        f'  # files: {{files: "s3://bucket/path/{field.column}={{{field.column}}}/*.parquet", partition: {column}}}\n'
        f"  # rates: {{table: {catalog}.CHANGE_ME.CHANGE_ME, reference: corrected_truth}}   # read whole"
    )


def _draft_checks(key: Sequence[str]) -> str:
    lines = ["checks:", "  - {metric: rowCount, mustBeGreaterThan: 0}"]
    lines += [f"  - {{metric: nullValues, column: {_quote_word(column)}, mustBe: 0}}" for column in key]
    if key:
        lines.append(f"  - {{metric: duplicateValues, columns: {_format_list(key)}, mustBe: 0}}")
    lines += [
        "# reconcile:   # totals of an input that the output must keep",
        '#   - {name: total, input: source, source: "sum(amount)", target: "sum(amount)", tolerance: 0}',
    ]
    return "\n".join(lines)


def _draft_compare(facts: TableDescription, field: PartitionField, key: Sequence[str]) -> str:
    numbers = [
        column.name
        for column in facts.columns
        if column.type.startswith(_NUMBERS) and _NAME.fullmatch(column.name) and column.name not in (field.column, *key)
    ]
    lines = ["# compare:   # the candidate against what was accepted before"]
    lines += [f'#   - {{metric: "sum({name})", warn: 5%, block: 60%}}' for name in numbers or ["amount"]]
    return "\n".join(lines)


def _draft_lineage(facts: TableDescription) -> str:
    there = {column.name for column in facts.columns}
    missing = [column for column in LINEAGE_BY_DEFAULT if column not in there]
    if there.issuperset(LINEAGE_BY_DEFAULT) and there.isdisjoint(set(LINEAGE_COLUMNS) - set(LINEAGE_BY_DEFAULT)):
        return "lineage_columns: true"
    if len(missing) < len(LINEAGE_BY_DEFAULT):
        return f"lineage_columns: {_format_list(column for column in LINEAGE_COLUMNS if column in there)}"
    return f"# true, once the table has them: {build_add_columns_sql(facts.table, missing)}\nlineage_columns: false"


def _quote_word(text: str) -> str:
    """A name as a YAML scalar that stays text."""
    return f'"{text}"' if text.lower() in ("null", "true", "false") else text


def _format_list(words: Iterable[str]) -> str:
    return f"[{', '.join(_quote_word(word) for word in words)}]"


def _to_printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
