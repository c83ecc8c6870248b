"""Compute chunks in Python: the transform gets each input as a ``pyarrow.Table``, and returns one or plain rows."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errata.engines.failures import classify_error
from errata.engines.files.changed_sources import build_source_changed
from errata.engines.files.source import FileSource
from errata.engines.output_advice import advise_on_output
from errata.engines.spark.compute.lineage_columns import build_context, build_lineage
from errata.engines.spark.compute.transforms import load_transform
from errata.engines.transform_errors import build_transform_error
from errata.errors import EngineError, ErrataError, OutputContract, TransformFailed
from errata.failpoints import failpoint
from errata.model.graph.read_rule import ReadRule, rule_of_pin
from errata.model.manifest import InputPin, TargetPin, list_divisible_inputs
from errata.model.partition import WHOLE, name_partition
from errata.model.product import Merge
from errata.model.product.eras import QUARANTINE
from errata.model.refs import quarantine_table, run_branch
from errata.ports.compute import TRIAL, ChunkEngine, ChunkWork
from errata.ports.measure import Measurer
from errata.ports.tables import QuarantinedRow
from errata.testing.lake import Lake
from errata.testing.measure import MemoryMeasurer
from errata.testing.pinned_inputs import PinnedInputs, Rows, read_target, require_pinned
from errata.testing.quarantine import MemoryQuarantine
from errata.testing.row_expressions import evaluate_condition
from errata.testing.row_values import digest_rows, fit_value, freeze_value, to_plain
from errata.testing.scope import Scope
from errata.testing.staging import ATTEMPT, append_rows
from errata.testing.topics.memory_emitted import EmittedRows, MemoryEmitted

Transform = Callable[..., Any]
_UNSTAGED = "nothing of this chunk was staged; main is unchanged"


@dataclass
class MemoryChunks:
    """Computes chunks of a project; ``transforms`` replaces the planned code of a product by a function."""

    lake: Lake
    sources: FileSource
    quarantine: MemoryQuarantine
    emitted: MemoryEmitted
    cache: Path
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    _fates: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _prior_counts: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def check_sources(self, work: ChunkWork) -> None:
        """See the port."""
        files = self._inputs(work).list_files(work.manifest, work.chunk.partitions)
        if problems := self.sources.verify(files):
            raise build_source_changed(work, len(files), problems)

    def _inputs(self, work: ChunkWork) -> PinnedInputs:
        return PinnedInputs(self.lake, work.parts.__getitem__, work.manifest.erasure)

    def append(self, work: ChunkWork) -> None:
        """See the port."""
        aside, emitted = SetAside(work), EmittedRows(work)
        output = self._compute(work, aside, emitted=emitted)
        self._fates[work.attempt] = {**self._write_quarantine(work, aside), **emitted.write(self.emitted)}
        failpoint("stage.before_commit")
        started = time.monotonic()
        table = self.lake.table(work.manifest.target.staging.table)
        rows = [table.metadata.schema.store(row) for row in output]
        append_rows(table, run_branch(work.run_id), rows, (ATTEMPT, work.attempt), {"errata.run": work.run_id})
        self._fates[work.attempt] = {
            **self._fates[work.attempt],
            **self._prior_counts.pop(work.attempt, {}),
            "write_ms": round(1000 * (time.monotonic() - started)),
        }
        failpoint("stage.after_commit")

    def _compute(
        self, work: ChunkWork, aside: SetAside, shuffle: int | None = None, emitted: EmittedRows | None = None
    ) -> Rows:
        manifest, target = work.manifest, work.manifest.target
        if manifest.restored is not None:
            table = manifest.restored.origin or target.table
            snapshot = require_pinned(self.lake, table, manifest.restored.snapshot_id)
            metadata = self.lake.table(table).metadata
            then = Scope.of_pin(metadata, target).rows(snapshot, work.chunk.partitions)
            names = manifest.restored.columns
            rows = [{name: row.get(names.get(name, "")) for name in target.columns} for row in then]
            return self._inputs(work).drop_listed(rows, manifest.erasure.columns if manifest.erasure else ())
        inputs = self._inputs(work).read_all(manifest, work.chunk.partitions, work.earlier)
        if shuffle is not None:
            chance = random.Random(shuffle)  # noqa: S311 - an order, not a secret
            inputs = {name: chance.sample(rows, len(rows)) for name, rows in inputs.items()}
        rows = self._call(work, inputs, aside, emitted or EmittedRows(work))
        lineage = build_lineage(work)
        stamps = {name: lineage[name] for name in manifest.lineage_columns}
        rows = [{**row, **stamps} for row in rows]
        may_leave_out = manifest.has_override("schema")
        if manifest.publish.merge is None:
            return conform_rows(rows, target, may_leave_out=may_leave_out)
        return merge_rows(self._read_prior(work), rows, target, manifest.publish.merge, may_leave_out=may_leave_out)

    def _read_prior(self, work: ChunkWork) -> Rows:
        """The rows that a merge starts from: those of erased subjects are left out and counted."""
        manifest, target = work.manifest, work.manifest.target
        rows = read_target(self.lake, target, target.base_snapshot_id, work.chunk.partitions)
        if not manifest.leaves_out_prior_rows or manifest.erasure is None:
            return rows
        kept = self._inputs(work).drop_listed(rows, manifest.erasure.columns)
        counts = {"rows_in": len(rows), "rows_used": len(kept), "rows_quarantined": 0}
        counts["rows_suppressed"] = len(rows) - len(kept)
        self._prior_counts[work.attempt] = {f"{name}:{target.table}": n for name, n in counts.items()}
        return kept

    def _call(self, work: ChunkWork, inputs: Mapping[str, Rows], aside: SetAside, emitted: EmittedRows) -> Rows:
        import pyarrow as pa

        manifest, code = work.manifest, work.manifest.code
        try:
            build = self.transforms.get(manifest.product) or load_transform(
                work.parts[code.zip_digest], code.zip_digest, code.call, self.cache
            )
            made = build(
                build_context(work, aside, emitted, deterministic_id, stamp),
                **{name: pa.Table.from_pylist(r) for name, r in inputs.items()},
            )
            return [dict(row) for row in (made.to_pylist() if isinstance(made, pa.Table) else made)]
        except ErrataError:
            raise
        except (Exception, SystemExit) as error:
            if known := classify_error(error, work.where, None):
                raise known from error
            raise build_transform_error(work, error) from error

    def _write_quarantine(self, work: ChunkWork, aside: SetAside) -> Mapping[str, int]:
        manifest, grain = work.manifest, work.manifest.target.grain
        found, counts, is_used = list[QuarantinedRow](), dict[str, int](), False
        first = manifest.chunks[0].partitions[0] if manifest.chunks else manifest.partitions[0]
        for pin in manifest.inputs:
            if not pin.is_counted or (pin.partition is None and first not in work.chunk.partitions):
                continue
            rule = rule_of_pin(pin, grain).without_look
            is_used, rows = True, self._inputs(work).read(pin, rule, work.chunk.partitions, manifest.target)
            taken = [row for row in rows if row.fate is not None and row.fate.action == QUARANTINE]
            counts |= {
                f"rows_in:{pin.name}": len(rows),
                f"rows_used:{pin.name}": sum(row.fate is None for row in rows),
                f"rows_quarantined:{pin.name}": len(taken),
                f"rows_suppressed:{pin.name}": sum(row.fate is not None for row in rows) - len(taken),
            }
            for row in taken:
                name = WHOLE if pin.partition is None else _find_owner(rule, row.values[pin.partition])
                assert row.fate is not None
                found.append(_record(work, pin, name, row.fate.kind, row.fate.reason, row.origin, row.values))
        for pin, reason, rows_aside in aside.rows:
            rule, column = rule_of_pin(pin, grain), str(pin.partition)
            own = [row for row in rows_aside if _find_owner(rule, row[column]) in work.chunk.partitions]
            counts[f"rows_set_aside:{pin.name}"] = counts.get(f"rows_set_aside:{pin.name}", 0) + len(own)
            is_used, origin = True, f"{manifest.code.call} {manifest.code.version}"
            for values in own:
                name = _find_owner(rule, values[column])
                found.append(_record(work, pin, name, "transform", reason, origin, values))
        if is_used:
            table = quarantine_table(manifest.target.table, work.run_id)
            self.quarantine.ensure(table)
            self.quarantine.write(table, work.attempt, found)
        return counts

    def explain(self, work: ChunkWork, error: Exception) -> ErrataError:
        """See the port."""
        known = classify_error(error, f"chunk {work.chunk.chunk_id}", None)
        return known or EngineError(
            f"chunk {work.chunk.chunk_id} could not be staged: {type(error).__name__}: {error}",
            state="nothing of this chunk was adopted; main is unchanged",
        )

    def cost(self, work: ChunkWork) -> Mapping[str, int]:
        """See the port. Nothing ran on Spark."""
        return {"jobs": 0, "tasks": 0, "core_ms": 0, **self._fates.pop(work.attempt, {})}

    def digests(self, work: ChunkWork, parallelism: int) -> Mapping[str, str]:
        """See the port. The rows of each input come in another order for another parallelism."""
        target = work.manifest.target
        columns = sorted(set(target.columns) - set(work.manifest.lineage_columns))
        output = self._compute(work, SetAside(work), shuffle=parallelism)
        return {
            name: ":".join(map(str, digest_rows(_cut(output, target, [name]), columns)))
            for name in work.chunk.partitions
        }

    @contextmanager
    def trial(self, work: ChunkWork) -> Iterator[tuple[Measurer, Mapping[str, int]]]:
        """See the port."""
        output = self._compute(work, SetAside(work))
        names = [name_partition(row[work.manifest.target.column], work.manifest.target.grain) for row in output]
        yield (
            MemoryMeasurer(self.lake, work.parts.__getitem__, {TRIAL: output}),
            {name: names.count(name) for name in names},
        )

    def cancel(self, work: ChunkWork) -> None:
        """See the port. Python code in this process cannot be stopped."""


@dataclass
class SetAside:
    """Collects the rows that a transform quarantines."""

    work: ChunkWork
    rows: list[tuple[InputPin, str, Rows]] = field(default_factory=list)

    def __call__(self, frame: Any, condition: Any, reason: str, source: str | None) -> Any:
        """The table without the rows for which the condition (SQL text, or a function of a row) is true."""
        able = list_divisible_inputs(self.work.manifest)
        chosen = [pin for pin in able if source in (None, pin.name)]
        if len(chosen) != 1 or not reason.strip():
            raise TransformFailed("ctx.quarantine was refused; expected a reason and the input whose rows these are")
        holds = condition if callable(condition) else lambda row: evaluate_condition(str(condition), row)
        rows = frame.to_pylist()
        taken = [n for n, row in enumerate(rows) if holds(row) is True]
        self.rows.append((chosen[0], reason, [rows[n] for n in taken]))
        return frame.take([n for n in range(len(rows)) if n not in set(taken)])


def deterministic_id(*columns: str) -> Callable[[Mapping[str, Any]], str]:
    """A function of a row that gives the id which Spark would compute from these columns."""

    def tag(value: Any) -> str:
        text = value if value is None or isinstance(value, str) else str(to_plain(value))
        return "n" if text is None else f"v{len(text)}:{text}"

    return lambda row: hashlib.sha256("".join(tag(row[name]) for name in columns).encode()).hexdigest()


def stamp(frame: Any, values: Mapping[str, str | None]) -> Any:
    """The table with these lineage columns."""
    import pyarrow as pa

    for name, value in values.items():
        column = pa.array([value] * frame.num_rows, pa.string())
        known = name in frame.column_names
        frame = frame.set_column(frame.column_names.index(name), name, column) if known else frame.append_column(
            name, column
        )  # fmt: skip
    return frame


def conform_rows(rows: Sequence[Mapping[str, Any]], target: TargetPin, *, may_leave_out: bool = False) -> Rows:
    """Rows with exactly the target's columns and types; raises ``OutputContract`` listing every difference."""
    names = dict.fromkeys(name for row in rows for name in row)
    fixed = {*target.required, *target.key, target.column}
    missing = [name for name in target.columns if rows and name not in names]
    problems = [f"column {name} is missing" for name in missing if not may_leave_out or name in fixed]
    unknown = [name for name in names if name not in target.columns]
    problems += [f"column {name} is not in {target.table}" for name in unknown]
    misfits = dict[str, str]()
    made = list[dict[str, Any]]()
    for row in rows if not problems else ():
        try:
            made.append({name: fit_value(row.get(name), kind) for name, kind in target.columns.items()})
        except TypeError as misfit:
            wrong = next(name for name, kind in target.columns.items() if not _fits(row.get(name), kind))
            misfits[wrong] = target.columns[wrong]
            problems.append(f"column {wrong}: {misfit}")
            break
    problems += [
        f"column {name} of {target.table} is required, and the transform's output holds NULL in it"
        for name in target.required
        if any(row[name] is None for row in made)
    ]
    if problems:
        raise OutputContract(
            f"the transform's output does not match {target.table}: {'; '.join(problems)}",
            state=_UNSTAGED,
            hint=advise_on_output(misfits, missing, unknown) or "give the column a value in every row",
            problems=problems,
        )
    return made


def _fits(value: Any, kind: str) -> bool:
    try:
        fit_value(value, kind)
    except TypeError:
        return False
    return True


def merge_rows(prior: Rows, changes: Rows, target: TargetPin, merge: Merge, *, may_leave_out: bool) -> Rows:
    """The prior rows with the transform's rows merged in by key: the newest version of a key is kept."""
    deleted = [bool(merge.sql) and evaluate_condition(merge.sql, row) for row in changes]
    plain = [{name: v for name, v in row.items() if name in target.columns or name not in merge.markers}
             for row in changes]  # fmt: skip
    held: dict[tuple[Any, ...], list[tuple[Any, int, bool, dict[str, Any]]]] = {}
    for change, (row, gone) in enumerate(
        [*((row, False) for row in prior),
         *zip(conform_rows(plain, target, may_leave_out=may_leave_out), deleted, strict=True)]
    ):  # fmt: skip
        is_change = change >= len(prior)
        if is_change and any(row[name] is None for name in (*target.key, *([merge.version] if merge.version else []))):
            raise OutputContract("a change has no key or no version; which row of the key to keep is not known",
                                 state=_UNSTAGED)  # fmt: skip
        key = (name_partition(row[target.column], target.grain), *(freeze_value(row[name]) for name in target.key))
        version = row[merge.version] if merge.version else 0
        held.setdefault(key, []).append((version, int(is_change), gone, row))
    kept = list[dict[str, Any]]()
    for rows in held.values():
        top = max((one[:2] for one in rows if one[0] is not None), default=(None, 0))
        best = [one for one in rows if one[:2] == top]
        if top[1] == 0:
            kept += [one[3] for one in rows if not one[1]]
        elif len(best) > 1:
            raise OutputContract("two changes of one key have the same version", state=_UNSTAGED)
        else:
            kept += [one[3] for one in best if not one[2]]
    return kept


def _find_owner(rule: ReadRule, value: Any) -> str:
    return rule.find_owner(name_partition(value, rule.input_grain))


def _cut(rows: Rows, target: TargetPin, partitions: Sequence[str]) -> Rows:
    return [row for row in rows if name_partition(row[target.column], target.grain) in partitions]


def _record(
    work: ChunkWork, pin: InputPin, partition: str, kind: str, reason: str, origin: str, values: Mapping[str, Any]
) -> QuarantinedRow:
    row = json.dumps({name: to_plain(value) for name, value in values.items()}, ensure_ascii=False)
    return QuarantinedRow(work.chunk.chunk_id, pin.name, partition, kind, reason, origin, row)


_conforms: type[ChunkEngine] = MemoryChunks
