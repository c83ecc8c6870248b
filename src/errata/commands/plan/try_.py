"""`errata try`: compute partitions with the current code and inputs, judge and compare them; no run, nothing written.

Gate and diff are those of a run, applied to the transform's output instead of a candidate. Guardrails that protect a
table from changes do not apply, because nothing is changed; those that no run could pass (schema, missing sources) do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from errata.approval.permissions import require_role
from errata.commands.plan.plan import draft_plan
from errata.commands.plan.show import refused_view
from errata.errors import PlanRefused
from errata.gate.diff.movements import build_metric_moves
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.audit import Actor
from errata.model.manifest import Chunk, Override, count_untouched_partitions
from errata.model.partition import format_ranges
from errata.model.product import Role
from errata.planning.request import RULES, Request
from errata.ports.compute import TRIAL, ChunkWork
from errata.views.diff import DiffView
from errata.views.run import TryView
from errata.worker.attempt import refuse_foreign_partitions
from errata.workspace import Workspace

_ENFORCED_RULES = frozenset({"schema", "source-missing"})
_ALL_ROLES = tuple(Role)


def try_partitions(
    workspace: Workspace, actor: Actor, product: str, partitions: str | Sequence[str], sample: int
) -> TryView:
    """Compute, measure, judge and compare these partitions."""
    require_role(workspace, actor, _ALL_ROLES, "try")
    started = time.monotonic()
    workspace.product(product)  # a name that is not known is refused before anything starts
    workspace.narrate("reading the tables while Spark starts")
    workspace.engines.start_early()
    plan = draft_plan(workspace, _build_request(product, actor, partitions))
    manifest = plan.manifest
    if manifest is None:
        refused = [verdict for verdict in plan.verdicts if verdict.level == "refuse"]
        raise PlanRefused(
            f"the trial was refused: {'; '.join(f'{verdict.rule}: {verdict.message}' for verdict in refused)}",
            state="nothing was computed",
            hint="\n".join(dict.fromkeys(line for verdict in refused for line in verdict.look[:1])),
            plan=refused_view(workspace.product(product), plan),
        )
    # imported late: the SQL parser takes half a second to import
    from errata.gate.measure.scan_plan import compile_plan

    workspace.narrate(f"computing {format_ranges(manifest.target.grain, manifest.partitions)}")
    chunk = Chunk(TRIAL, manifest.partitions, 0, 0)
    work = ChunkWork(TRIAL, manifest, plan.digest, chunk, TRIAL, plan.parts)
    base = manifest.target.base_snapshot_id
    workspace.engines.chunks.check_sources(work)
    with workspace.engines.chunks.trial(work) as (measurer, rows):
        refuse_foreign_partitions(work, rows)
        workspace.narrate("measuring it and comparing it with main")
        numbers = measurer.measure(manifest, compile_plan(manifest), candidate_snapshot=TRIAL, prior_snapshot=base)
        made = {name: rows.get(name, 0) for name in manifest.partitions}
        facts = CandidateSummary(made, manifest.target.columns, is_trial=True)
        verdict = judge_candidate(manifest, numbers, facts)
        found = measurer.diff(manifest, TRIAL, base, manifest.partitions, sample, numbers)
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


def _build_request(product: str, actor: Actor, partitions: str | Sequence[str]) -> Request:
    aside = tuple(Override(rule, "a trial changes nothing") for rule in RULES if rule not in _ENFORCED_RULES)
    return Request(product, "trial", actor.person, None, None, partitions, "restate", None, 0, None, aside)
