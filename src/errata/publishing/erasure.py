"""Erased subjects must not become visible again: what was judged before the list grew is not published, and what a
rollback would bring back is looked at first.

The list itself belongs to others; here are the moments at which it is asked. ``watermark`` is where the list stands:
a candidate counts for the watermark at which it was found to hold nobody on it, and publications keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.canonical import digest_of
from errata.errors import StateRefused
from errata.ledger import CandidateRecord, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import format_ranges
from errata.model.side_tables import find_landing_pin
from errata.publishing.replacement import Replacement
from errata.workspace import Workspace


def check_candidate_erasure(
    workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest, candidate: CandidateRecord
) -> None:
    """Find that a candidate holds nobody on the list, as it stands now, and keep that; refuse it otherwise."""
    mark = workspace.engines.suppressions.watermark(run.table)
    fact = _fact_name(candidate, mark)
    if not mark or fact in workspace.ledger.facts.list(run.run_id):
        return
    staged = {candidate.snapshot_id or "": manifest.partitions}
    found = workspace.engines.suppressions.held(run.table, manifest.target.staging, staged)
    if found:
        told = format_ranges(manifest.target.grain, found)
        raise _record_refusal(
            workspace, actor, run, "validate",
            f"its candidate holds rows of suppressed subjects in {told}",
            f'compute it without them: errata plan {run.product} … --supersede {run.run_id} --reason "…"',
        )  # fmt: skip
    workspace.ledger.facts.record(run.run_id, fact, {"candidate": candidate.n, "watermark": mark}, actor)


def require_erasure_check(workspace: Workspace, actor: Actor, run: RunRecord, candidate: CandidateRecord) -> str:
    """The watermark, for which the candidate was judged; refuses when the list has moved since."""
    mark = workspace.engines.suppressions.watermark(run.table)
    if mark and _fact_name(candidate, mark) not in workspace.ledger.facts.list(run.run_id):
        raise _record_refusal(
            workspace, actor, run, "publish",
            "the list of suppressed subjects has moved since its candidate was judged: assemble and validate again",
            f"errata validate {run.run_id}",
        )  # fmt: skip
    return mark


def require_clean_rollback(
    workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest, order: Replacement, judged: str = ""
) -> str:
    """The watermark, when no row of anyone on the list would come back; refuses otherwise.

    ``judged`` is the watermark at which the same order passed before: the files are read again only if the list moved.
    """
    sources = {**dict.fromkeys(order.add_from, order.partitions), **order.rewrite}
    why = "because it puts back files as they were"
    return _require_no_erased_rows(workspace, actor, run, manifest.target, sources, why, judged)


def require_clean_versions(
    workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest, scope: Sequence[str]
) -> str:
    """The same for versions side by side, where a rollback shows an earlier one: none of them may hold such a row.

    Where there is no earlier version, what shows again are the target's own rows, which nobody put back.
    """
    accepted = workspace.ledger.partitions.accepted(run.table, scope)
    shown = [name for name in scope if accepted[name].stands_on is not None]
    versions = find_landing_pin(manifest)
    sources = {workspace.engines.beside.head(versions.table): shown} if shown else {}
    return _require_no_erased_rows(workspace, actor, run, versions, sources, f"which {versions.table} still holds")


def _require_no_erased_rows(
    workspace: Workspace,
    actor: Actor,
    run: RunRecord,
    target: TargetPin,
    sources: Mapping[str, Sequence[str]],
    because: str,
    judged: str = "",
) -> str:
    mark = workspace.engines.suppressions.watermark(run.table)
    moved = mark and mark != judged
    found = workspace.engines.suppressions.held(run.table, target, sources) if moved and sources else ()
    if found:
        told = format_ranges(target.grain, found)
        raise _record_refusal(
            workspace, actor, run, "rollback",
            f"it would bring back rows of suppressed subjects in {told}, {because}",
            f'roll back the other partitions (--partitions …), or compute these: errata plan {run.product} '
            '--partitions … --reason "…"',
        )  # fmt: skip
    return mark


def watermark_fields(mark: str) -> dict[str, str]:
    """What a publication keeps of it; nothing where there is no list."""
    return {"watermark": mark} if mark else {}


def _fact_name(candidate: CandidateRecord, mark: str) -> str:
    return f"unsuppressed.{candidate.n}.{digest_of(mark)[:16]}"


def _record_refusal(
    workspace: Workspace, actor: Actor, run: RunRecord, action: str, why: str, hint: str
) -> StateRefused:
    error = StateRefused(f"{action} of {run.run_id} was refused; {why}", state="main is unchanged", hint=hint)
    workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
    return error
