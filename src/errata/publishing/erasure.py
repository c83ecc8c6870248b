"""Keep rows of erased subjects from becoming visible again through a publication or rollback.

A candidate that was checked before the list of subjects grew is not published, and a rollback leaves out their rows.
The list is maintained elsewhere. ``watermark`` is the version of the list: a candidate passes for the watermark at
which it was checked, and publications record it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from errata.canonical import digest_of
from errata.errors import ErasureListMoved, StateRefused
from errata.ledger import CandidateRecord, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import TargetPin
from errata.model.partition import format_ranges
from errata.model.product.erasure import ErasurePin
from errata.model.side_tables import find_landing_pin
from errata.publishing.replacement import Replacement
from errata.workspace import RunContext, Workspace

MOST_VERDICTS = 3
"""Verdicts that one command gives on one candidate, if subjects are erased between each of them and its publication."""


def check_candidate_erasure(context: RunContext, candidate: CandidateRecord, listed: str | None = None) -> None:
    """Check that a candidate holds no rows of listed subjects and record that; refuse it otherwise.

    ``listed`` is the snapshot of the list up to which the inputs of the run were looked at, if they were.
    """
    mark = listed or context.engines.suppressions.watermark(context.run.table)
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
            f"name the columns of their ids under inputs.NAME.subjects in {_find_product_file(context)}, so that their "
            f'rows are not read; then: errata plan {context.run.product} … --supersede {context.run_id} --reason "…"',
        )  # fmt: skip
    context.ledger.facts.record(context.run_id, fact, {"candidate": candidate.n, "watermark": mark}, context.actor)


def require_erasure_check(workspace: Workspace, actor: Actor, run: RunRecord, candidate: CandidateRecord) -> str:
    """Watermark for which the candidate was checked; refuses when the list has changed since."""
    mark = workspace.engines.suppressions.watermark(run.table)
    if mark and _fact_name(candidate, mark) not in workspace.ledger.facts.list(run.run_id):
        # named, because without its number waves that have no verdict yet are judged first
        wave = f" --wave {run.wave}" if run.wave else ""
        raise _record_refusal(
            workspace, actor, run, "publish",
            "the list of suppressed subjects has moved since its candidate was judged: assemble and validate again",
            f"errata validate {run.run_id}{wave}", ErasureListMoved,
        )  # fmt: skip
    return mark


@dataclass(frozen=True, slots=True)
class ErasedBefore:
    """What a rollback would bring back of erased subjects: the watermark that was looked at, and the partitions."""

    watermark: str = ""
    partitions: tuple[str, ...] = ()
    without: ErasurePin | None = None


def find_erased_before(context: RunContext, order: Replacement) -> ErasedBefore:
    """The partitions whose old files hold rows of listed subjects; these come back as rows, without them."""
    mark = context.engines.suppressions.watermark(context.run.table)
    sources = {**dict.fromkeys(order.add_from, order.partitions), **order.rewrite}
    if not mark or not sources:
        return ErasedBefore(mark)
    without = context.engines.erased.read_pin(_list_subjects(context))
    found = context.engines.suppressions.held(context.run.table, context.manifest.target, sources)
    return ErasedBefore(mark, found, without if found else None)


def require_same_list(context: RunContext, looked: ErasedBefore) -> None:
    """Refuse a rollback if the list has grown since its files were looked at; the next one looks again."""
    if context.engines.suppressions.watermark(context.run.table) != looked.watermark:
        raise _record_refusal(
            context.workspace, context.actor, context.run, "rollback",
            "the list of erased subjects has grown since the files that come back were looked at",
            f'errata rollback {context.run_id} --reason "…"',
        )  # fmt: skip


def _list_subjects(context: RunContext) -> tuple[str, ...]:
    """Columns that identify subjects in the table, as product files name them now: erasure outranks a plan."""
    products = context.workspace.project.products.values()
    named = [name for one in products if one.target.table == context.run.table for name in one.target.subjects]
    return tuple(dict.fromkeys(named))


def require_clean_versions(context: RunContext, scope: Sequence[str]) -> str:
    """Watermark for which versions side by side were checked: no stored version may hold rows of listed subjects.

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
) -> str:
    mark = workspace.engines.suppressions.watermark(run.table)
    found = workspace.engines.suppressions.held(run.table, target, sources) if mark and sources else ()
    if found:
        told = format_ranges(target.grain, found)
        raise _record_refusal(
            workspace, actor, run, "rollback",
            f"it would bring back rows of suppressed subjects in {told}, {because}",
            f'roll back the other partitions (--partitions …), or compute these: errata plan {run.product} '
            '--partitions … --reason "…"',
        )  # fmt: skip
    return mark


def _find_product_file(context: RunContext) -> str:
    product = context.workspace.project.products.get(context.run.product)
    return product.path if product and product.path else "the product file"


def watermark_fields(mark: str) -> dict[str, str]:
    """Field in which a publication records the watermark; empty where no list applies."""
    return {"watermark": mark} if mark else {}


def _fact_name(candidate: CandidateRecord, mark: str) -> str:
    return f"unsuppressed.{candidate.n}.{digest_of(mark)[:16]}"


def _record_refusal(
    workspace: Workspace,
    actor: Actor,
    run: RunRecord,
    action: str,
    why: str,
    hint: str,
    kind: type[StateRefused] = StateRefused,
) -> StateRefused:
    error = kind(f"{action} of {run.run_id} was refused; {why}", state="main is unchanged", hint=hint)
    workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
    return error
