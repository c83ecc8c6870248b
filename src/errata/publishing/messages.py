"""Errors of publish and rollback: partitions, commits, writers and the next command. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from errata.errors import EngineError, PublishConflict
from errata.model.partition import Grain, format_partition_list, sort_oldest_first
from errata.text.numbers import plural

if TYPE_CHECKING:
    from errata.model.table import Commit
    from errata.ports.publish import IntentLog

_VERBS = {"append": "appended", "overwrite": "overwritten", "delete": "deleted", "replace": "rewritten"}
_MAIN_UNCHANGED = "main is unchanged; the staged output is kept"


_LIVE_WRITE_ADVICE = {
    "conflict": "where live jobs can ask first (errata.live), publish.on_live_write: freeze holds them off",
    "live_wins": "",
    "freeze": "the partition was frozen, so this writer does not ask: use errata.live.writing or errata live write",
}
"""Advice after a live write, by the plan's ``on_live_write`` setting."""


def conflict_error(
    kind: str,
    run_id: str,
    product: str,
    grain: Grain,
    scope: Sequence[str],
    written: Mapping[str, tuple[Commit, ...]],
    on_live_write: str = "conflict",
    told: Mapping[str, str] | None = None,
) -> PublishConflict:
    """Error when another writer changed partitions of the scope; ``told`` adds details for some of them."""
    since = "after planning" if kind == "publish" else "after the publication"
    names = sort_oldest_first(grain, written)
    was = "was" if len(names) == 1 else "were"
    lines = [f"{len(names)} of {plural(len(scope), 'partition')} {was} written by someone else {since}"]
    lines += [f"  {name}  {_describe_writes(written[name], (told or {}).get(name, ''))}" for name in names[:20]]
    if len(names) > 20:
        lines.append(f"  … and {len(names) - 20} more")
    others = [name for name in scope if name not in written]
    if kind == "publish":
        hints = [plan_again_command(product, run_id, grain, names), _LIVE_WRITE_ADVICE[on_live_write]]
        if others:
            hints[0] = f"then correct the written ones: {hints[0]}"
            hints.insert(0, publish_rest_command(run_id, grain, others))
    else:
        listed = format_partition_list(grain, names)
        hints = [
            f'correct them instead of losing those writes: errata plan {product} --partitions {listed} --reason "…"'
        ]
        if others:
            rest = format_partition_list(grain, others)
            hints.append(f'or roll back only the others: errata rollback {run_id} --partitions {rest} --reason "…"')
    return PublishConflict(
        "\n".join(lines),
        state=_MAIN_UNCHANGED,
        hint="\n".join(filter(None, hints)),
        run_id=run_id,
        partitions=list(names),
        on_live_write=on_live_write,
        snapshots=sorted({commit.snapshot_id for commits in written.values() for commit in commits}),
        publications=sorted(
            {
                commit.summary["errata.publication"]
                for commits in written.values()
                for commit in commits
                if "errata.publication" in commit.summary
            }
        ),
    )


def publish_rest_command(run_id: str, grain: Grain, free: Sequence[str]) -> str:
    """The command that publishes the partitions that nobody else wrote."""
    return f"errata publish {run_id} --partitions {format_partition_list(grain, free)}"


def plan_again_command(product: str, run_id: str, grain: Grain, partitions: Sequence[str]) -> str:
    """The command that plans these partitions again, in place of this run."""
    listed = format_partition_list(grain, partitions)
    return f'errata plan {product} --partitions {listed} --supersede {run_id} --reason "…"'


def _describe_writes(commits: Sequence[Commit], told: str) -> str:
    if not commits:
        return f"{told or 'its content changed'}; history does not say by whom"
    newest = commits[0]
    at = datetime.fromtimestamp(newest.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    more = f" and {len(commits) - 1} more commits" if len(commits) > 1 else ""
    verb = _VERBS.get(newest.operation, "written")
    who = newest.summary.get("errata.publication") or newest.application
    return f"{verb} by snapshot {newest.snapshot_id} ({who}, {at}Z){more}" + (f"; {told}" if told else "")


def unrecorded_error(conflict: PublishConflict, log: IntentLog) -> PublishConflict:
    """The conflict, extended with the names of publications that this ledger lacks."""
    lost = [name for name in conflict.fields.get("publications", ()) if not log.is_recorded(name)]
    if not lost:
        return conflict
    return PublishConflict(
        f"{conflict.message}\n{', '.join(lost)} is not in this ledger: another ledger governs the table too, or this "
        "one was restored from an older backup",
        state=conflict.state,
        hint=conflict.hint,
        **conflict.fields,
    )


def drift_error(run_id: str, product: str, table: str, what: str, expected: object, found: object) -> PublishConflict:
    """Error when the table itself is no longer the one that was planned."""
    return PublishConflict(
        f"{table} changed after planning: expected {f'{what} {expected}'.strip()}, found {found}",
        state=_MAIN_UNCHANGED,
        hint=f'errata plan {product} … --supersede {run_id} --reason "…"',
        run_id=run_id,
        table=table,
    )


def repeated_corrections_error(run_id: str, product: str, table: str, publication_id: str) -> PublishConflict:
    """Error when the run's corrections were already written by a publication that the ledger lacks.

    They came from another candidate, so that publication cannot be recorded in place of this one.
    """
    return PublishConflict(
        f"{table} has the corrections of {publication_id}, which is not in this ledger: it was restored from an "
        "older backup; the same corrections would be there twice",
        state="nothing was published",
        hint=f"delete them from {table} (publication_id = '{publication_id}'), then: errata plan {product} … "
        f'--supersede {run_id} --reason "…"',
        run_id=run_id,
        publications=[publication_id],
    )


def shape_error(run_id: str, table: str, why: str, instead: str) -> PublishConflict:
    """Error when a rollback cannot exchange files any more, because the table's partitioning has changed."""
    return PublishConflict(
        f"rollback of {run_id} was refused; {table}: {why}",
        state=_MAIN_UNCHANGED,
        hint=f"put the rows back instead of the files: {instead}",
        run_id=run_id,
        table=table,
    )


def dropped_error(run_id: str, product: str, table: str, column: str) -> PublishConflict:
    """Error when the partition column of a rollback was dropped from the table."""
    return PublishConflict(
        f"rollback of {run_id} was refused; the partition column {column} of {table} was dropped",
        state=_MAIN_UNCHANGED,
        hint=f"name another partition column in the product file and compute again: errata plan {product} … "
        '--reason "…"',
        run_id=run_id,
        table=table,
    )


def contention_error(kind: str, run_id: str, reason: str, on_live_write: str) -> PublishConflict:
    """Error when the table changes too fast, or another process closed the intent (``on_live_write`` is empty then)."""
    why, noun = (' --reason "…"', "rollback") if kind == "rollback" else ("", "publication")
    hint = f"pause the live writer for a moment and repeat: errata {kind} {run_id}{why}"
    advice = (
        (_LIVE_WRITE_ADVICE.get(on_live_write) or _LIVE_WRITE_ADVICE["conflict"])
        if kind == "publish" and on_live_write
        else ""
    )
    return PublishConflict(
        f"the {noun} did not land: {reason}",
        state=_MAIN_UNCHANGED,
        hint=f"{hint}\n{advice}" if advice else hint,
        run_id=run_id,
    )


def failed_error(kind: str, run_id: str, why: str, state: str) -> EngineError:
    """Error when an engine failed during a publication or rollback, and the table shows that nothing landed."""
    reason = ' --reason "…"' if kind == "rollback" else ""
    hint = f"look at the catalog and the storage: errata doctor\nthen repeat: errata {kind} {run_id}{reason}"
    return EngineError(f"the {kind} of {run_id} failed: {why}", state=state, hint=hint, run_id=run_id)
