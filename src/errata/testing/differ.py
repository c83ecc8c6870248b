"""Compare old and new rows in Python, by key where it is unique, else as whole rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from errata.model.diff import (
    BY_KEY,
    BY_ROW,
    SAME,
    ChangePattern,
    ColumnChange,
    Diff,
    PartitionDiff,
    SampleRow,
    SchemaDiff,
    mask_row,
    order_sample,
    sum_by_column,
)
from errata.model.manifest import Manifest
from errata.model.partition import name_partition
from errata.testing.row_values import Row, digest_rows, freeze_value, to_plain

Rows = list[dict[str, Any]]


def compare_rows(before: Rows, after: Rows, manifest: Manifest, partitions: Sequence[str], sample: int) -> Diff:
    """The diff of two sides; lineage columns and columns that the run adds are not compared."""
    pin, new = manifest.target, {one.name: one.type for one in manifest.target.new_columns}
    columns = sorted(set(pin.columns) - set(manifest.lineage_columns) - set(new))
    hidden = frozenset(manifest.classified) & set(columns)
    tolerance = {name: amount for name, amount in manifest.tolerance.items() if name in columns}
    compared = _Comparison(columns, pin.key, tolerance, hidden)
    found = list[PartitionDiff]()
    samples, patterns = list[SampleRow](), Counter[tuple[str, ...]]()
    for name in partitions:
        sides = [
            [row for row in side if name_partition(row[pin.column], pin.grain) == name] for side in (before, after)
        ]
        if digest_rows(sides[0], columns) == digest_rows(sides[1], columns):
            count = len(sides[1])
            found.append(PartitionDiff(name, count, count, 0, 0, 0, count, SAME))
        elif pin.key and not any(compared.repeats(side) for side in sides):
            found.append(compared.by_key(name, sides[0], sides[1], samples, patterns))
        else:
            found.append(compared.by_row(name, sides[0], sides[1], samples))
    return Diff(
        schema=SchemaDiff(added=new),
        partitions=tuple(found),
        columns=sum_by_column(found),
        sample=order_sample(sorted(samples, key=lambda one: one.change != "changed"), sample),
        notes=_build_notes([one.partition for one in found if one.method == BY_ROW], keyed=bool(pin.key)),
        together=tuple(ChangePattern(names, rows) for names, rows in patterns.most_common(50)),
        masked=tuple(sorted(hidden)),
        tolerance=tolerance,
    )


def _build_notes(by_row: Sequence[str], *, keyed: bool) -> tuple[str, ...]:
    if not keyed:
        return ("the product has no key; rows are compared whole: a change is one row removed and one added",)
    return (f"the key is not unique in {', '.join(by_row)}; there, rows are compared whole",) if by_row else ()


@dataclass(frozen=True, slots=True)
class _Comparison:
    columns: Sequence[str]
    key: tuple[str, ...]
    tolerance: Mapping[str, str]
    hidden: frozenset[str]

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(freeze_value(row[name]) for name in self.key)

    def repeats(self, rows: Rows) -> bool:
        return len({self.key_of(row) for row in rows}) < len(rows)

    def by_key(
        self, partition: str, before: Rows, after: Rows, samples: list[SampleRow], patterns: Counter[tuple[str, ...]]
    ) -> PartitionDiff:
        """One partition compared by key."""
        old, new = ({self.key_of(row): row for row in side} for side in (before, after))
        values = [name for name in self.columns if name not in self.key]
        counts, moved, within = Counter[str](), Counter[str](), Counter[str]()
        for key in sorted(old.keys() | new.keys(), key=repr):
            was, now = old.get(key), new.get(key)
            letters = {name: self._compare(name, was[name], now[name]) for name in values} if was and now else {}
            changed = [name for name, letter in letters.items() if letter == "x"]
            near = [name for name, letter in letters.items() if letter == "~"]
            status = "added" if was is None else "removed" if now is None else "changed" if changed else "unchanged"
            counts[status] += 1
            counts["within"] += status == "unchanged" and bool(near)
            moved.update(changed)
            within.update(near)
            if status != "unchanged":
                shown = changed if status == "changed" else values
                samples.append(self._sample(partition, status, was, now, shown))
            if changed:
                patterns[tuple(changed)] += 1
        columns = {
            name: ColumnChange(moved[name], self._sum(before, name), self._sum(after, name), within[name])
            for name in values
        }
        return PartitionDiff(
            partition, len(before), len(after), counts["added"], counts["removed"], counts["changed"],
            counts["unchanged"], BY_KEY, columns, counts["within"],
        )  # fmt: skip

    def by_row(self, partition: str, before: Rows, after: Rows, samples: list[SampleRow]) -> PartitionDiff:
        """One partition compared as a multiset of rows."""
        texts = [Counter(repr([row[name] for name in self.columns]) for row in side) for side in (before, after)]
        added, removed = texts[1] - texts[0], texts[0] - texts[1]
        for status, odd, side in (("removed", removed, before), ("added", added, after)):
            for row in side:
                if odd[repr([row[name] for name in self.columns])]:
                    shown = [name for name in self.columns if name not in self.key]
                    was, now = (row, None) if status == "removed" else (None, row)
                    samples.append(self._sample(partition, status, was, now, shown))
        kept = (texts[0] & texts[1]).total()
        return PartitionDiff(
            partition, len(before), len(after), added.total(), removed.total(), 0, kept, BY_ROW
        )  # fmt: skip

    def _compare(self, name: str, was: Any, now: Any) -> str:
        if was == now:
            return "="
        amount = self.tolerance.get(name)
        if amount is None or was is None or now is None:
            return "x"
        limit = Decimal(amount.rstrip("%"))
        moved = abs(Decimal(str(now)) - Decimal(str(was)))
        near = moved * 100 <= abs(Decimal(str(was))) * limit if amount.endswith("%") else moved <= limit
        return "~" if near else "x"

    def _sum(self, rows: Rows, name: str) -> str | None:
        values = [row[name] for row in rows if row[name] is not None]
        if name in self.hidden or any(isinstance(one, bool) or not isinstance(one, (int, float, Decimal))
                                      for one in values):  # fmt: skip
            return None
        return str(to_plain(sum(values))) if values else "0"

    def _sample(self, partition: str, status: str, was: Row | None, now: Row | None, names: Sequence[str]) -> SampleRow:
        row = now or was or {}
        key = {name: row[name] for name in self.key}
        sides = [{name: side[name] for name in names} if side is not None else {} for side in (was, now)]
        shown = [{k: to_plain(v) for k, v in mask_row(one, self.hidden).items()} for one in (key, *sides)]
        return SampleRow(partition, status, *shown)
