"""Partitions that are no sets of files: what a product's partitions are in such a table, and what it costs. Pure.

A table may be unpartitioned, partitioned more coarsely than the product, by bucket alone, or hold files of an older
spec. Its partitions can still be corrected: files are taken out whole, and what they hold of other partitions is
written anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.manifest import Rewrite
from errata.model.product import Target
from errata.model.span import unit_transform
from errata.planning.guardrail_result import Verdict
from errata.ports.tables import PartitionField, TargetFacts
from errata.text.numbers import plural, size


def unit_of(wanted: Target, found: TargetFacts) -> PartitionField | None:
    """The field that the product's partitions are values of: the table's, or one that its files could have.

    None: the column is not there, or its type has no such grain.
    """
    if found.partition_field is not None:
        return found.partition_field
    kind = next((column.type for column in found.columns if column.name == wanted.column), None)
    transform = unit_transform(kind, wanted.grain) if kind else None
    return PartitionField(wanted.column, kind, transform, wanted.grain) if kind and transform else None


def rewrite_of(wanted: Target, found: TargetFacts) -> Rewrite | None:
    """Why partitions are no sets of files, and how much of them is shared; None where they are."""
    why = _why(wanted, found)
    return Rewrite(why, len(found.shared_files), found.shared_rows, found.shared_bytes) if why else None


def judge_rewrite(wanted: Target, found: TargetFacts) -> Iterator[Verdict]:
    """What the publication will write anew, and why; nothing where partitions are sets of files."""
    needed = rewrite_of(wanted, found)
    if needed is None:
        return
    files = f"{plural(needed.files, 'file')}, {needed.rows:,} rows, {size(needed.bytes)}"
    cost = f"up to {files} are written anew for the rows of other partitions" if needed.files else "nothing is shared"
    yield Verdict("rewrite", "warn", f"mode rewrite: {needed.why}; {cost}")


def spec_text(fields: tuple[PartitionField, ...]) -> str:
    """A partition spec as people write it."""
    return ", ".join(_text(field) for field in fields) or "nothing"


def _why(wanted: Target, found: TargetFacts) -> str:
    if found.partition_field is None:
        spec = spec_text(found.partition_fields)
        return f"{wanted.grain}s of {wanted.column} are no partitions of {found.table}, which is partitioned by {spec}"
    if found.shared_files:
        return f"{plural(len(found.shared_files), 'file')} with rows of these partitions have another partition spec"
    return ""


def _text(field: PartitionField) -> str:
    return field.column if field.transform == "identity" else f"{field.transform}({field.column})"
