"""Helpers shared by commands: select the named partitions, audit conflicts, read the refs of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from errata.errors import NotFound, PublishConflict, UsageError
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.partition import (
    Grain,
    format_partition_list,
    format_ranges,
    parse_list,
    parse_partition,
    sort_oldest_first,
)
from errata.workspace import Workspace


def select_partitions(manifest: Manifest, partitions: str | Sequence[str] | None) -> tuple[str, ...]:
    """Partitions that a command names, or all of the run's; refuses partitions that are not in the run."""
    if partitions is None:
        return manifest.partitions
    grain = manifest.target.grain
    hint = f"of this run: --partitions {format_partition_list(grain, manifest.partitions)}"
    try:
        found = _parse_partitions(grain, partitions)
    except UsageError as error:
        error.state = error.state or "nothing was changed"
        error.hint = error.hint or hint
        raise
    foreign = [name for name in found if name not in set(manifest.partitions)]
    if foreign:
        raise NotFound(
            f"{format_ranges(grain, foreign)} is not part of this run; expected partitions of "
            f"{format_ranges(grain, manifest.partitions)}",
            state="nothing was changed",
            hint=hint,
        )
    return found


def _parse_partitions(grain: Grain, partitions: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(partitions, str) or grain.is_time or not partitions:
        return parse_list(grain, partitions if isinstance(partitions, str) else ",".join(partitions))
    # a value may hold a comma, or spaces at its ends
    return sort_oldest_first(grain, {parse_partition(grain, one) for one in partitions})


@contextmanager
def audit_conflicts(workspace: Workspace, actor: Actor, run: RunRecord, action: str) -> Iterator[None]:
    """Audit a conflict before it propagates."""
    try:
        yield
    except PublishConflict as error:
        workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message, {"conflict": True})
        raise


def read_refs(workspace: Workspace, table: str) -> Mapping[str, str] | None:
    """Branches and tags of a table; None when it does not exist (a shadow is created late and dropped early)."""
    try:
        return workspace.engines.pins.refs(table)
    except NotFound:
        return None
