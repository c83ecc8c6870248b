"""Check that the target and the inputs fit the product file, and find the columns that the target would gain. Pure.

Each problem is one sentence and cannot be overridden: a run adds columns, but never changes or removes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.model.graph.read_rule import rule_of_input
from errata.model.manifest import NewColumn
from errata.model.partition import Grain
from errata.model.product import INEXACT, Product, Target
from errata.model.side_tables import VERSION_COLUMNS, list_side_table_columns
from errata.model.types import PARTITION_TYPES
from errata.planning.era_coverage import check_coverage
from errata.planning.inputs.rebuild_rules import find_origin_problems
from errata.planning.shared_files import find_partition_unit, format_spec
from errata.ports.tables import InputState, TargetState

_SHOWN = 3


def find_schema_problems(
    product: Product, target: TargetState, inputs: Mapping[str, InputState], partitions: Sequence[str]
) -> tuple[str, ...]:
    """All problems that keep a run of these partitions from being planned."""
    types = {column.name: column.type for column in target.columns}
    return (
        *_find_partition_problems(product, target, types),
        *_find_column_problems(
            product, target, types | {new.name: new.type for new in find_new_columns(product.target, target)}
        ),
        *_find_added_problems(product.target, target, types),
        *find_origin_problems(product, target.table, {**product.target.add_columns, **types}),
        *_find_value_problems(target),
        *(facts.problem for facts in inputs.values() if facts.problem),
        *_find_coverage_problems(product, target, inputs, partitions),
    )


def find_side_table_problems(
    product: Product, target: TargetState, found: Mapping[str, tuple[str, ...] | None]
) -> tuple[str, ...]:
    """Problems of existing side tables: columns they lack, and target columns that clash with a table of versions."""
    names = [column.name for column in target.columns]
    wanted = list_side_table_columns(product.publish, product.target, names)
    taken = [name for name in VERSION_COLUMNS if name in names] if product.publish.versions else []
    clash = (
        (f"{target.table} has columns {', '.join(taken)}, which a table of versions needs for itself",) if taken else ()
    )
    return clash + tuple(
        f"{table}, which publish names, lacks columns {', '.join(missing)}; add them, or name a new table"
        for table, columns in wanted.items()
        if (there := found.get(table)) is not None and (missing := [name for name in columns if name not in there])
    )


def find_new_columns(wanted: Target, found: TargetState) -> tuple[NewColumn, ...]:
    """Columns that the product adds and the table lacks, with the field ids the table would assign."""
    known = {column.name for column in found.columns}
    missing = [(name, kind) for name, kind in wanted.add_columns.items() if name not in known]
    return tuple(NewColumn(name, kind, found.last_column_id + n) for n, (name, kind) in enumerate(missing, 1))


def _find_coverage_problems(
    product: Product, target: TargetState, inputs: Mapping[str, InputState], partitions: Sequence[str]
) -> tuple[str, ...]:
    unit, grain = find_partition_unit(product.target, target), product.target.grain
    kind = unit.column_type if unit else None
    rules = ((source, rule_of_input(source, grain)) for source in product.inputs)
    proofs = (
        check_coverage(source, inputs[source.name], rule.input_grain, kind, rule.list_reads(partitions))
        for source, rule in rules
    )
    return tuple(problem for proof in proofs for problem in proof.problems)


def build_lineage_sql(table: str, missing: Sequence[str]) -> str:
    """SQL that adds lineage columns."""
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{name} string' for name in missing)})"


def _find_partition_problems(product: Product, target: TargetState, types: Mapping[str, str]) -> tuple[str, ...]:
    column, grain = product.target.column, product.target.grain
    if column not in types:
        return (f"{target.table} has no column {column}, which the product names as its partition column",)
    kind = types[column]
    if kind not in PARTITION_TYPES:
        return (f"{column} is {kind}; a partition column is one of {', '.join(PARTITION_TYPES)}",)
    if find_partition_unit(product.target, target) is None:
        spec = format_spec(target.partition_fields)
        return (
            f"grain {grain} of {column} ({kind}) cannot be derived from its values; the table is partitioned by {spec}",
        )
    zone = product.target.zone
    if zone != "UTC" and kind in ("timestamp", "timestamptz") and grain in (Grain.DAY, Grain.MONTH, Grain.YEAR):
        return (f"{grain}s of {column} are UTC in the table and {zone} in the product; partition by a date column",)
    return ()


def _find_column_problems(product: Product, target: TargetState, types: Mapping[str, str]) -> tuple[str, ...]:
    problems = []
    if key := [name for name in product.target.key if name not in types]:
        problems.append(f"{target.table} lacks key columns {', '.join(key)}")
    if lineage := [name for name in product.lineage_columns if name not in types]:
        problems.append(
            f"{target.table} lacks lineage columns; add them with: {build_lineage_sql(target.table, lineage)}"
        )
    types = {**product.target.add_columns, **types}
    merge = product.publish.merge
    if merge and merge.version and merge.version not in types:
        problems.append(f"{target.table} has no column {merge.version}, which publish.merge.version names")
    if shown := [name for name in (*product.classified, *product.tolerance) if name not in types]:
        problems.append(f"{target.table} lacks columns named under classified or diff: {', '.join(sorted(shown))}")
    problems += [
        f"diff.tolerance of {name}: expected float, double or decimal, found {types[name]}"
        for name in product.tolerance
        if name in types and not types[name].startswith(INEXACT)
    ]
    return tuple(problems)


def _find_added_problems(wanted: Target, found: TargetState, types: Mapping[str, str]) -> tuple[str, ...]:
    problems = []
    spelt = {name.casefold(): name for name in types}
    for name, kind in wanted.add_columns.items():
        there = spelt.get(name.casefold(), name)
        if there != name:
            problems.append(f"add_columns: {name} differs from the column {there} of {found.table} in case only")
        elif types.get(name, kind) != kind:
            problems.append(
                f"add_columns: {name} is {types[name]} in {found.table} and {kind} in the product; a run adds columns "
                "and changes none: give it the table's type, or change the table first"
            )
    if late := [name for name in wanted.key if name not in types and name in wanted.add_columns]:
        problems.append(f"add_columns: the key column {', '.join(late)} would be NULL in every row that is there")
    return tuple(problems)


def _find_value_problems(target: TargetState) -> tuple[str, ...]:
    if not target.unreadable_values:
        return ()
    found = _format_some([repr(value) for value in target.unreadable_values])
    return (f"the table holds partition values that are not of this grain: {found}",)


def _format_some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
