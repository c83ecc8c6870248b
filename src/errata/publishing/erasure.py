"""Keep rows of erased subjects from becoming visible again through a publication or rollback.

A candidate that was checked before the list of subjects grew is not published, and a rollback checks the rows that it
would bring back. The list is maintained elsewhere. ``watermark`` is the version of the list: a candidate passes for the
watermark at which it was checked, and publications record it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.canonical import digest_of
from errata.errors import StateRefused
from errata.ledger import CandidateRecord, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import TargetPin
from errata.model.partition import format_ranges
from errata.model.side_tables import find_landing_pin
from errata.publishing.replacement import Replacement
from errata.workspace import RunContext, Workspace


def check_candidate_erasure(context: RunContext, candidate: CandidateRecord) -> None:
    """Check that a candidate holds no rows of listed subjects and record that; refuse it otherwise."""
    mark = context.engines.suppressions.watermark(context.run.table)
    fact = _fact_name(candidate, mark)
    if not mark or fact in context.ledger.facts.list(context.run_id):
        return
    staged = {candidate.snapshot_id or "": context.manifest.partitions}
    found = context.engines.suppressions.held(context.run.table, context.manifest.target.staging, staged)
    if found:
        told = format_ranges(context.manifest.target.grain, found)
        raise _record_refusal(
            context.workspace, context.actor, context.run, "validate",
            f"its candidate holds rows of suppressed subjects in {told}",
            f'compute it without them: errata plan {context.run.product} … --supersede {context.run_id} --reason "…"',
        )  # fmt: skip
    context.ledger.facts.record(context.run_id, fact, {"candidate": candidate.n, "watermark": mark}, context.actor)


def require_erasure_check(workspace: Workspace, actor: Actor, run: RunRecord, candidate: CandidateRecord) -> str:
    """Watermark for which the candidate was checked; refuses when the list has changed since."""
    mark = workspace.engines.suppressions.watermark(run.table)
    if mark and _fact_name(candidate, mark) not in workspace.ledger.facts.list(run.run_id):
        raise _record_refusal(
            workspace, actor, run, "publish",
            "the list of suppressed subjects has moved since its candidate was judged: assemble and validate again",
            f"errata validate {run.run_id}",
        )  # fmt: skip
    return mark


def require_clean_rollback(context: RunContext, order: Replacement, judged: str = "") -> str:
    """Watermark for which the rollback was checked; refuses when it would bring back rows of listed subjects.

    ``judged`` is the watermark at which the same order passed before: the files are read again only if the list has
    changed.
    """
    sources = {**dict.fromkeys(order.add_from, order.partitions), **order.rewrite}
    why = "because it puts back files as they were"
    return _require_no_erased_rows(
        context.workspace, context.actor, context.run, context.manifest.target, sources, why, judged
    )


def require_clean_versions(context: RunContext, scope: Sequence[str]) -> str:
    """Like :func:`require_clean_rollback`, for versions side by side: no stored version may hold such a row.

    A partition without an earlier version shows the target's own rows again, which the rollback does not bring back.
    """
    accepted = context.ledger.partitions.accepted(context.run.table, scope)
    shown = [name for name in scope if accepted[name].stands_on is not None]
    versions = find_landing_pin(context.manifest)
    sources = {context.engines.beside.head(versions.table): shown} if shown else {}
    return _require_no_erased_rows(
        context.workspace, context.actor, context.run, versions, sources, f"which {versions.table} still holds"
    )


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
    """Field in which a publication records the watermark; empty where no list applies."""
    return {"watermark": mark} if mark else {}


def _fact_name(candidate: CandidateRecord, mark: str) -> str:
    return f"unsuppressed.{candidate.n}.{digest_of(mark)[:16]}"


def _record_refusal(
    workspace: Workspace, actor: Actor, run: RunRecord, action: str, why: str, hint: str
) -> StateRefused:
    error = StateRefused(f"{action} of {run.run_id} was refused; {why}", state="main is unchanged", hint=hint)
    workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
    return error
