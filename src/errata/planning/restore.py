"""Plan a restore like any other run: the target at an older snapshot is the only input, and nothing is computed. Pure.

Rules that need the product's own inputs (reconciliations, row rules, quarantine limits) do not apply; rules on the
output (checks, comparisons, controls) do. Rows come back as they were, lineage columns included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from errata.canonical import digest_of, sha256
from errata.model.manifest import Code, Restored
from errata.model.partition import EPOCH, Grain, format_ranges
from errata.model.product import Input, Product
from errata.model.table import Commit
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.shared_files import find_partition_unit
from errata.ports.tables import InputState, PastTarget, TargetState
from errata.text.numbers import format_moment

INPUT = "restored"
NOTHING_RUNS = "none: rows are put back as they were"
_COMPUTED = ("append", "merge")
_SHOWN = 8
_COMPACTION = "replace"


def to_restore_product(product: Product, columns: Mapping[str, str]) -> Product:
    """The product with the old snapshot as its only input and without the rules that need its own inputs.

    Readers get the rows as in any other run, but modes append and merge become a replacement of partitions. Rows of
    erased subjects are left out; ``columns`` are the target's and their names in what is restored.
    """
    publish = product.publish
    if publish.mode in _COMPUTED:
        publish = replace(publish, mode="replace_partitions", merge=None)
    if publish.on_live_write == "live_wins":
        # recomputing on top of a live write makes no sense here: the old snapshot has no rows for it
        publish = replace(publish, on_live_write="conflict")
    target = replace(product.target, add_columns={})
    # as the snapshot names them; one that it lacks is a problem of the plan
    subjects = tuple(columns.get(name, name) for name in target.subjects)
    source = Input(INPUT, table=target.table, partition=target.column, subjects=subjects)
    return replace(
        product,
        target=target,
        inputs=(source,),
        reconcile=(),
        row_limits=(),
        publish=publish,
        prove_determinism=0,
        reconstruct=None,
    )


def build_restore_input(held: PastTarget, product: Product, target: TargetState) -> InputState:
    """The target at the older snapshot, as an input."""
    field = find_partition_unit(product.target, target)
    return InputState(
        name=INPUT,
        kind="table",
        location=target.table,
        column_type=field.column_type if field else None,
        partitions=held.partitions,
        snapshot_id=held.snapshot_id,
        table_uuid=target.table_uuid,
        newest_ms=held.at_ms,
    )


def strip_code(code: Code, call: str = NOTHING_RUNS) -> Code:
    """Code to seal for a run without a transform: none of the project's code, on the same engine."""
    return replace(
        code, call=call, version="", config={}, config_digest=digest_of({}), zip_digest=sha256(b""),
        lock_digest=None, git_commit=None, git_dirty=False,
    )  # fmt: skip


def build_restored(held: PastTarget, asked: str) -> Restored:
    """The manifest's record of what is restored."""
    return Restored(held.snapshot_id, format_instant(held.at_ms), asked, held.columns)


def check_restore(
    held: PastTarget, grain: Grain, partitions: Sequence[str], subjects: Sequence[str] = ()
) -> Iterator[GuardrailResult]:
    """Why the old snapshot cannot be restored, or else the later writers whose changes the restore drops."""
    unnamed = [name for name in subjects if name not in held.columns]
    problems = [*held.problems]
    if unnamed:
        told = f"snapshot {held.snapshot_id} lacks {', '.join(unnamed)}, which identify subjects"
        problems.append(f"{told}, so that rows of erased subjects in it cannot be found")
    for problem in problems:
        yield GuardrailResult("restore", "refuse", problem, final=True)
    if problems:
        return
    writes = [commit for commit in held.since.commits if commit.operation != _COMPACTION]
    written = {name for commit in writes for name in _list_touched(commit, partitions)}
    untouched = [name for name in partitions if name not in written]
    if untouched and held.since.complete:
        level = "refuse" if len(untouched) == len(partitions) else "warn"
        told = f"{format_ranges(grain, untouched, _SHOWN)} was not written since snapshot {held.snapshot_id}"
        yield GuardrailResult("restore", level, f"{told}: there is nothing to put back")
        if level == "refuse":
            return
    yield GuardrailResult(
        "restore", "ok", f"as main was at snapshot {held.snapshot_id}, {format_moment(format_instant(held.at_ms))} UTC"
    )
    for commit in writes[:_SHOWN]:
        yield GuardrailResult("restore", "warn", f"removes {_describe_commit(commit, grain, partitions)}")
    if len(writes) > _SHOWN:
        yield GuardrailResult("restore", "warn", f"removes {len(writes) - _SHOWN} older commits as well")
    if not held.since.complete:
        text = "history does not lead back to it (expired, or main was set back): who wrote since cannot all be named"
        yield GuardrailResult("restore", "warn", text)


def _describe_commit(commit: Commit, grain: Grain, partitions: Sequence[str]) -> str:
    where = format_ranges(grain, _list_touched(commit, partitions), _SHOWN)
    what = f"snapshot {commit.snapshot_id} ({commit.operation}, {format_moment(format_instant(commit.at_ms))} UTC)"
    if run := commit.summary.get("errata.run"):
        kind = "rollback" if commit.summary.get("errata.kind") == "rollback" else "publication"
        return f"a {kind} of {run} in {where}: {what}"
    return f"what {commit.application} wrote to {where}: {what}"


def _list_touched(commit: Commit, partitions: Sequence[str]) -> list[str]:
    return [name for name in partitions if commit.touches_everything or name in commit.touched]


def format_instant(at_ms: int) -> str:
    """A time of the catalog as the manifest has it."""
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
