"""Check a transform on a little data: on ``pyarrow`` tables, or on Spark if a session is given.

A transform is called as Errata calls it: with a context and one table for each input, cut to the partitions it may
produce and their look-back. Every check raises ``AssertionError`` with what differed and the first rows.

>>> def build(ctx, raw):
...     return [{"day": row["day"], "gross": row["amount"]} for row in raw.to_pylist()]
>>> from datetime import date
>>> raw = [{"day": date(2026, 1, day), "amount": day} for day in (1, 2)]
>>> case = TransformCase(build, {"raw": raw}, ["2026-01-01", "2026-01-02"], column="day", read_by={"raw": "day"})
>>> case.assert_sound()
>>> case.assert_totals({"2026-01-02": {"sum(gross)": 2}})
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from errata.model.context import Context, Mode
from errata.model.graph.read_rule import ReadRule, Shift
from errata.model.partition import Grain, end_of, name_partition, sort_oldest_first, start_of
from errata.model.product.sinks import Sink, require_allowed_sink
from errata.testing.chunks import deterministic_id, stamp
from errata.testing.row_expressions import evaluate_condition, evaluate_total
from errata.testing.row_values import freeze_value
from errata.testing.side_effects import find_plan_hazards, watch_side_effects

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["TransformCase"]

Rows = list[dict[str, Any]]
_SHOWN = 5
"""Rows of a failure that are shown."""
_LAYOUTS = ((1, 1), (2, 3), (3, 7))
"""Seeds of row orders, with the number of Spark partitions that the rows are in."""


@dataclass(frozen=True)
class TransformCase:
    """One transform with its inputs: rows as dictionaries, ``pyarrow`` tables or Spark frames of a few rows.

    ``column`` is the partition column of the output. ``read_by`` names the partition column of each input that is read
    by partition; the others are read whole. ``lookback`` and ``lookahead`` are in partitions, by input, as in the
    product file. ``own`` names the input that is the product's own table, if there is one. ``sinks`` are those of the
    product, by name; a transform that emits to one that a run may not send to fails.
    """

    build: Callable[..., Any]
    inputs: Mapping[str, Any]
    partitions: Sequence[str]
    column: str
    grain: Grain | str = Grain.DAY
    key: Sequence[str] = ()
    read_by: Mapping[str, str] = field(default_factory=dict)
    lookback: Mapping[str, int] = field(default_factory=dict)
    lookahead: Mapping[str, int] = field(default_factory=dict)
    own: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    clock: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    spark: SparkSession | None = None

    def run(self, partitions: Sequence[str] | None = None, *, seed: int = 0, tasks: int = 2) -> Rows:
        """The rows that the transform returns for these partitions, by default for all.

        ``seed`` shuffles the rows of every input, and ``tasks`` spreads them over that many Spark partitions.
        """
        return self._collect(self._call(partitions or self.partitions, seed, tasks))

    def _call(self, partitions: Sequence[str], seed: int, tasks: int) -> Any:
        tables = {name: self._cut(name, partitions, seed) for name in self.inputs}
        if self.spark is not None:
            spark = self.spark
            frames = {name: spark.createDataFrame(table).repartition(tasks) for name, table in tables.items()}
            return self.build(self._context(partitions), **frames)
        return self.build(self._context(partitions), **tables)

    def _collect(self, made: Any) -> Rows:
        if hasattr(made, "collect") and hasattr(made, "sparkSession"):
            return [row.asDict(recursive=True) for row in made.collect()]
        return [dict(row) for row in (made.to_pylist() if hasattr(made, "to_pylist") else made)]

    def _to_table(self, name: str) -> pa.Table:
        import pyarrow as pa

        given = self.inputs[name]
        if hasattr(given, "toArrow"):
            given = given.toArrow()
        return given if isinstance(given, pa.Table) else pa.Table.from_pylist(list(given))

    def _cut(self, name: str, partitions: Sequence[str], seed: int) -> pa.Table:
        import pyarrow as pa

        table = self._to_table(name)
        column, places = self.read_by.get(name), list(range(table.num_rows))
        if column is not None:
            back, ahead = self.lookback.get(name, 0), self.lookahead.get(name, 0)
            rule = ReadRule(
                self._grain, self._grain, Shift.of_steps(back, self._grain), Shift.of_steps(ahead, self._grain)
            )
            wanted = set(rule.list_reads(partitions))
            values = table[column].to_pylist()
            places = [n for n in places if name_partition(values[n], self._grain) in wanted]
        if seed:
            random.Random(seed).shuffle(places)  # noqa: S311 - an order, not a secret
        return table.take(pa.array(places, pa.int64()))

    @property
    def _grain(self) -> Grain:
        return Grain(self.grain)

    def _context(self, partitions: Sequence[str]) -> Context:
        names = sort_oldest_first(self._grain, partitions)
        timed = [name for name in names if self._grain.is_time and name != "null"]
        helpers: tuple[Any, Any, Any] = (deterministic_id, stamp, _leave_out)
        if self.spark is not None:
            from errata.engines.spark.compute import lineage_columns as columns
            from errata.engines.spark.inputs.row_rules import split_rows

            helpers = (columns.deterministic_id, columns.stamp, partial(split_rows, lambda _rows, _reason: None))
        return Context(
            run_id="test-run",
            product="test",
            mode=Mode.BACKFILL,
            clock=self.clock,
            partitions=names,
            start=start_of(self._grain, timed[0]) if timed else None,
            end=end_of(self._grain, timed[-1]) if timed else None,
            config=self.config,
            version="0",
            _deterministic_id=helpers[0],
            _stamp=helpers[1],
            _quarantine=helpers[2],
            _emit=lambda sink, _rows: require_allowed_sink(self.sinks, sink, Mode.BACKFILL),
        )

    def assert_sound(self) -> None:
        """Every check that needs no numbers of yours."""
        self.assert_deterministic()
        self.assert_idempotent()
        self.assert_stays_in_its_partitions()
        self.assert_keys_are_unique()
        self.assert_chunks_agree()
        self.assert_no_side_effects()

    def assert_deterministic(self) -> None:
        """The same rows come again, from the same input, in another order, and spread over other tasks."""
        first = self.run()
        _compare("run 1", first, "run 2 with the same input", self.run())
        for seed, tasks in _LAYOUTS:
            again = self.run(seed=seed, tasks=tasks)
            _compare("the input as given", first, f"the input in another order ({seed}, {tasks} tasks)", again)

    def assert_idempotent(self) -> None:
        """Run again on a table that already holds its output, it returns the same rows.

        That can fail only for a transform that reads its own table, the input named by ``own``.
        """
        first, again = self.run(), self
        if self.own is not None:
            given, asked = self._to_table(self.own).to_pylist(), set(self.partitions)
            old = [row for row in given if name_partition(row[self.column], self._grain) not in asked]
            again = replace(self, inputs={**self.inputs, self.own: [*old, *first]})
        _compare("on the table as given", first, "on a table that holds that output", again.run())

    def assert_stays_in_its_partitions(self) -> None:
        """Every row is in one of the partitions that were asked for, also when only one is."""
        for asked in (list(self.partitions), *([name] for name in self.partitions)):
            strays = [row for name, rows in self._split(self.run(asked)).items() if name not in asked for row in rows]
            if strays:
                raise AssertionError(
                    f"asked for {', '.join(asked)}, the transform returned {len(strays)} rows of other partitions; "
                    f"keep rows of ctx.partitions only:\n{_show(strays)}"
                )

    def assert_keys_are_unique(self) -> None:
        """No two rows of the output have the same key; does nothing without a key."""
        counts = Counter(tuple(freeze_value(row[name]) for name in self.key) for row in self.run()) if self.key else {}
        if twice := [key for key, count in counts.items() if count > 1]:
            shown = "\n".join(f"  {dict(zip(self.key, key, strict=True))}" for key in twice[:_SHOWN])
            raise AssertionError(f"{len(twice)} keys are there more than once:\n{shown}")

    def assert_chunks_agree(self) -> None:
        """A partition that is computed alone, with its look-back, is the same as in a run over all of them.

        If not, the declared look-back is too short, or rows depend on others of the same run.
        """
        together = self._split(self.run())
        for name in self.partitions:
            alone = self._split(self.run([name])).get(name, [])
            _compare(f"{name} computed alone", alone, f"{name} of all partitions", together.get(name, []))

    def assert_no_side_effects(self) -> None:
        """The transform writes nothing, opens no connection, starts no program, and asks for no clock or chance.

        See :mod:`errata.testing.side_effects` for what is noticed and what is not.
        """
        with watch_side_effects() as seen:
            made = self._call(self.partitions, 0, 2)
        seen += find_plan_hazards(made)
        if seen:
            raise AssertionError("the transform does more than compute its rows:\n" + "\n".join(
                f"  {one}" for one in dict.fromkeys(seen)))  # fmt: skip

    def assert_totals(self, golden: Mapping[str, Mapping[str, Any]]) -> None:
        """Totals of partitions are the golden ones: partition → SQL aggregate → value."""
        found = self._split(self.run())
        wrong = []
        for partition, totals in golden.items():
            for sql, expected in totals.items():
                value = evaluate_total(sql, found.get(partition, []))
                if not _is_equal(value, expected):
                    wrong.append(f"  {partition}: {sql} is {value}, expected {expected}")
        if wrong:
            raise AssertionError("totals differ from the golden ones:\n" + "\n".join(wrong))

    def assert_reconciles(self, source: str, target: str, *, of: str, tolerance: Any = 0) -> None:
        """In every partition, an aggregate of the input and one of the output agree up to the tolerance."""
        column = self.read_by[of]
        output, wrong = self._split(self.run()), []
        for name in self.partitions:
            rows = [row for row in self._cut(of, [name], 0).to_pylist()
                    if name_partition(row[column], self._grain) == name]  # fmt: skip
            before, after = evaluate_total(source, rows), evaluate_total(target, output.get(name, []))
            if abs(Decimal(str(before or 0)) - Decimal(str(after or 0))) > Decimal(str(tolerance)):
                wrong.append(f"  {name}: {source} of {of} is {before}, {target} of the output is {after}")
        if wrong:
            raise AssertionError(f"input and output differ by more than {tolerance}:\n" + "\n".join(wrong))

    def _split(self, rows: Rows) -> dict[str, Rows]:
        if rows and self.column not in rows[0]:
            raise AssertionError(f"the output has no column {self.column}, only {', '.join(rows[0])}")
        found: dict[str, Rows] = {}
        for row in rows:
            found.setdefault(name_partition(row[self.column], self._grain), []).append(row)
        return found


def _leave_out(frame: pa.Table, condition: Any, _reason: str, _source: str | None) -> pa.Table:
    import pyarrow as pa

    holds = condition if callable(condition) else partial(evaluate_condition, str(condition))
    kept = [n for n, row in enumerate(frame.to_pylist()) if holds(row) is not True]
    return frame.take(pa.array(kept, pa.int64()))


def _compare(first_name: str, first: Rows, second_name: str, second: Rows) -> None:
    """Raise with the first rows that only one side has; the order of rows does not count."""
    sides = [Counter(_freeze(row) for row in rows) for rows in (first, second)]
    if sides[0] == sides[1]:
        return
    lines = [f"{first_name} gave {len(first)} rows, {second_name} gave {len(second)}, and they differ"]
    for name, rows, own in (
        (first_name, first, sides[0] - sides[1]),
        (second_name, second, sides[1] - sides[0]),
    ):
        if own:
            only = [row for row in rows if own[_freeze(row)]]
            lines.append(f"{own.total()} only in {name}:\n{_show(only)}")
    raise AssertionError("\n".join(lines))


def _freeze(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, freeze_value(value)) for name, value in row.items()))


def _show(rows: Iterable[Mapping[str, Any]]) -> str:
    listed = list(rows)
    shown = [f"  { ({name: _plain(value) for name, value in row.items()}) }" for row in listed[:_SHOWN]]
    return "\n".join([*shown, *([f"  … and {len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else [])])


def _plain(value: Any) -> Any:
    return str(value) if not isinstance(value, (str, int, float, bool, type(None))) else value


def _is_equal(value: Any, expected: Any) -> bool:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return Decimal(value) == Decimal(str(expected))
    return bool(value == expected)
