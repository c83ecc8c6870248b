"""`errata try`: compute partitions with the current code and inputs, judge and compare them; no run, nothing written.

Gate and diff are those of a run, applied to the transform's output instead of a candidate. Guardrails that protect a
table from changes do not apply, because nothing is changed; those that no run could pass (schema, missing sources) do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from errata.approval.permissions import require_role
from errata.commands.plan.plan import draft_plan
from errata.commands.plan.show import refused_view
from errata.commands.plan.trials import record_trial
from errata.errors import ChunkError, ErrataError, OutOfMemory, PlanRefused, UsageError
from errata.gate.diff.movements import build_metric_moves
from errata.gate.verdict.findings import BLOCK, CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.audit import Actor
from errata.model.manifest import Chunk, Manifest, Override, count_untouched_partitions
from errata.model.partition import format_partition_list, format_ranges
from errata.model.product import Role
from errata.model.product.rules import with_expected_rows
from errata.planning.build import Plan
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.request import RULES, Request
from errata.ports.compute import TRIAL, ChunkWork
from errata.views.diff import DiffView
from errata.views.run import TryView
from errata.worker.attempt import refuse_foreign_partitions
from errata.workspace import Workspace

_ENFORCED_RULES = frozenset({"schema", "source-missing"})
_ALL_ROLES = tuple(Role)
_MAX_SPANS = 5


def try_partitions(
    workspace: Workspace, actor: Actor, product: str, partitions: str | Sequence[str], sample: int
) -> TryView:
    """Compute, measure, judge and compare these partitions."""
    require_role(workspace, actor, _ALL_ROLES, "try")
    started = time.monotonic()
    workspace.product(product)  # a name that is not known is refused before anything starts
    workspace.narrate("reading the tables while Spark starts")
    workspace.engines.start_early()
    with workspace.ledger.or_empty() as ledger:
        plan = _draft_trial(replace(workspace, ledger=ledger), _build_request(product, actor, partitions))
    # how many rows a whole run writes says nothing about a trial of some partitions
    manifest = plan.manifest and replace(plan.manifest, checks=with_expected_rows(plan.manifest.checks, None))
    if manifest is None:
        refused = [verdict for verdict in plan.verdicts if verdict.level == "refuse"]
        raise PlanRefused(
            f"the trial was refused: {'; '.join(f'{verdict.rule}: {verdict.message}' for verdict in refused)}",
            state="nothing was computed",
            hint="\n".join(dict.fromkeys(line for verdict in refused for line in verdict.look[:1])),
            plan=refused_view(workspace, replace(plan, verdicts=_leave_out_overridden(plan))),
        )
    # imported late: the SQL parser takes half a second to import
    from errata.gate.measure.scan_plan import compile_plan

    workspace.narrate(f"computing {format_ranges(manifest.target.grain, manifest.partitions)}")
    chunk = Chunk(TRIAL, manifest.partitions, 0, 0)
    _refuse_several_snapshots(manifest)
    work = ChunkWork(TRIAL, manifest, plan.digest, chunk, TRIAL, plan.parts)
    base = manifest.target.base_snapshot_id
    with _told_for_a_trial(work):
        workspace.engines.chunks.check_sources(work)
        with workspace.engines.chunks.trial(work) as (measurer, rows):
            refuse_foreign_partitions(work, rows)
            workspace.narrate("measuring it and comparing it with main")
            numbers = measurer.measure(manifest, compile_plan(manifest), candidate_snapshot=TRIAL, prior_snapshot=base)
            made = {name: rows.get(name, 0) for name in manifest.partitions}
            facts = CandidateSummary(made, manifest.target.columns, is_trial=True)
            verdict = judge_candidate(manifest, numbers, facts)
            found = measurer.diff(manifest, TRIAL, base, manifest.partitions, sample, numbers)
    record_trial(workspace, actor, manifest, is_blocked=any(check.level == BLOCK for check in verdict.checks))
    return TryView(
        product=manifest.product,
        transform=f"{manifest.code.call} {manifest.code.version}",
        partitions=manifest.partitions,
        rows=sum(rows.values()),
        seconds=time.monotonic() - started,
        passed=verdict.passed,
        checks=verdict.checks,
        diff=DiffView(
            TRIAL,
            manifest.product,
            TRIAL,
            base,
            manifest.target.grain.value,
            count_untouched_partitions(manifest),
            manifest.target.key,
            found,
            build_metric_moves(manifest, numbers, manifest.partitions),
        ),
    )


def _draft_trial(workspace: Workspace, request: Request) -> Plan:
    try:
        return draft_plan(workspace, request)
    except UsageError as error:
        error.hint = error.hint or "errata try --help"
        raise


def _refuse_several_snapshots(manifest: Manifest) -> None:
    """Refuse partitions that read an input at different snapshots: a trial computes them together."""
    for pin in manifest.inputs:
        if pin.snapshots:
            spans = [format_ranges(manifest.target.grain, span.partitions) for span in pin.snapshots]
            raise UsageError(
                f"the trial was refused; {pin.name} ({pin.reference}) is read at {len(spans)} snapshots, and a trial "
                f"reads one: {'; '.join(spans[:_MAX_SPANS])}{' …' if len(spans) > _MAX_SPANS else ''}",
                state="nothing was computed",
                hint=f"errata try {manifest.product} {pin.snapshots[0].partitions[0]}",
            )


@contextmanager
def _told_for_a_trial(work: ChunkWork) -> Iterator[None]:
    """Make errors of the computation true for a trial: there is no chunk to stage or split, and no plan to repeat."""
    try:
        yield
    except ErrataError as error:
        error.state = "nothing was written"
        listed = format_partition_list(work.manifest.target.grain, work.chunk.partitions)
        again = f"errata try {work.manifest.product} {listed}"
        if isinstance(error, OutOfMemory):
            error.hint = "try fewer partitions at a time, or raise spark.driver.memory or spark.executor.memory"
        elif isinstance(error, ChunkError):
            error.hint = f"{error.hint}\nthen: {again}" if error.hint else again
        raise


def _leave_out_overridden(plan: Plan) -> tuple[GuardrailResult, ...]:
    """The results that decide about a trial; it overrides the other rules itself, and nobody asked for that."""
    return tuple(result for result in plan.verdicts if result.rule in _ENFORCED_RULES or result.level == "refuse")


def _build_request(product: str, actor: Actor, partitions: str | Sequence[str]) -> Request:
    aside = tuple(Override(rule, "a trial changes nothing") for rule in RULES if rule not in _ENFORCED_RULES)
    return Request(product, "trial", actor.person, None, None, partitions, "restate", None, 0, None, aside)
