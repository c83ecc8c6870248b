"""Tables whose partitions share files: what a product's partitions are there, and what a rewrite costs. Pure.

A table may be unpartitioned, partitioned more coarsely than the product, partitioned by bucket alone, or hold files of
an older spec. Its partitions can still be corrected: whole files are removed, and their rows of other partitions are
rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.manifest import Rewrite
from errata.model.product import Target
from errata.model.span import unit_transform
from errata.planning.guardrail_result import GuardrailResult
from errata.ports.tables import PartitionField, TargetState
from errata.text.numbers import format_size, plural


def find_partition_unit(wanted: Target, found: TargetState) -> PartitionField | None:
    """The partition field whose values are the product's partitions: the table's own, or one its column could have.

    None if the column is missing or its type does not support the grain.
    """
    if found.partition_field is not None:
        return found.partition_field
    kind = next((column.type for column in found.columns if column.name == wanted.column), None)
    transform = unit_transform(kind, wanted.grain) if kind else None
    return PartitionField(wanted.column, kind, transform, wanted.grain) if kind and transform else None


def find_rewrite(wanted: Target, found: TargetState) -> Rewrite | None:
    """Why partitions share files, and how much they share; None if they do not."""
    why = _explain_rewrite(wanted, found)
    return Rewrite(why, len(found.shared_files), found.shared_rows, found.shared_bytes) if why else None


def check_rewrite(wanted: Target, found: TargetState) -> Iterator[GuardrailResult]:
    """A warning with what the publication will rewrite and why; nothing if partitions do not share files."""
    needed = find_rewrite(wanted, found)
    if needed is None:
        return
    files = f"{plural(needed.files, 'file')}, {needed.rows:,} rows, {format_size(needed.bytes)}"
    cost = f"up to {files} are rewritten for the rows of other partitions" if needed.files else "nothing is shared"
    yield GuardrailResult("rewrite", "warn", f"mode rewrite: {needed.why}; {cost}")


def format_spec(fields: tuple[PartitionField, ...]) -> str:
    """A partition spec in readable form."""
    return ", ".join(_format_field(field) for field in fields) or "nothing"


def _explain_rewrite(wanted: Target, found: TargetState) -> str:
    if found.partition_field is None:
        spec = format_spec(found.partition_fields)
        return f"{found.table} is partitioned by {spec}, not by {wanted.grain} of {wanted.column}"
    if found.shared_files:
        return f"{plural(len(found.shared_files), 'file')} with rows of these partitions have another partition spec"
    return ""


def _format_field(field: PartitionField) -> str:
    return field.column if field.transform == "identity" else f"{field.transform}({field.column})"
