"""Cost of a run so far against its estimate, and the hard stop at the cap of its plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from errata.errors import CostCapReached, StateRefused
from errata.model.run import AttemptState, RunState
from errata.planning.estimate import compute_usd, count_busy_seconds, count_worker_cores
from errata.views import CostView

if TYPE_CHECKING:
    from errata.ledger import AttemptRecord
    from errata.model.manifest import Manifest
    from errata.worker.attempt import RunJob
    from errata.workspace import Workspace


def core_seconds(attempts: Iterable[AttemptRecord], cores: int, now: str) -> float:
    """Core-seconds during which workers had at least one chunk running, which is what a cluster charges for. Pure."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in attempts:
        start, end = _to_timestamp(attempt.started_at), _to_timestamp(attempt.ended_at or now)
        spans[f"{attempt.owner.host}/{attempt.owner.pid}/{attempt.owner.started}"].append((start, end))
    return sum(count_busy_seconds(worker) for worker in spans.values()) * cores


def cost_view(
    workspace: Workspace, manifest: Manifest, attempts: Sequence[AttemptRecord], facts: Mapping[str, Mapping[str, Any]]
) -> CostView | None:
    """Actual cost next to the estimate; None before the first attempt."""
    if not attempts:
        return None
    now = workspace.ledger.now()
    product = workspace.project.products.get(manifest.product)
    cores = count_worker_cores(workspace.project, product) if product else 1
    spent = core_seconds(attempts, cores, now)
    adopted = [attempt for attempt in attempts if attempt.state is AttemptState.ADOPTED]
    spans = [(_to_timestamp(a.started_at), _to_timestamp(a.ended_at or now)) for a in attempts]
    refined = facts.get("canary", {})
    planned = manifest.estimate
    return CostView(
        seconds=round(count_busy_seconds(spans)),
        core_seconds=round(spent),
        usd=compute_usd(workspace.project.core_hour_usd, spent),
        estimated_seconds=(
            int(refined.get("seconds_low", planned.seconds_low)),
            int(refined.get("seconds_high", planned.seconds_high)),
        ),
        estimated_usd=str(refined.get("usd", planned.usd)),
        basis=str(refined.get("basis", planned.basis)),
        worker_count=len({(a.owner.host, a.owner.pid, a.owner.started) for a in attempts}),
        attempt_count=len(attempts),
        commit_count=len(adopted),
        input_bytes=_sum_cost(adopted, "input_bytes"),
        shuffle_bytes=_sum_cost(adopted, "shuffle_bytes"),
        output_bytes=sum(attempt.bytes or 0 for attempt in adopted),
        output_file_count=sum(attempt.files or 0 for attempt in adopted),
    )


def _sum_cost(attempts: Iterable[AttemptRecord], name: str) -> int:
    return sum(int(attempt.cost.get(name, 0)) for attempt in attempts)


def _to_timestamp(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


def stop_at_cap(job: RunJob) -> None:
    """Pause the run and raise when it has reached its cost cap and chunks are still waiting.

    Does nothing for a plan without a cap, or with an override of the cost rule.
    """
    cap, price = job.manifest.limits.max_usd, job.workspace.project.core_hour_usd
    if cap is None or any(override.rule == "cost" for override in job.manifest.overrides):
        return
    ledger, run_id = job.workspace.ledger, job.run.run_id
    if Decimal(price) <= 0:
        raise CostCapReached(
            f"run {run_id} was stopped; its plan allows {cap} USD, and at a price of {price} USD per core-hour "
            "its cost is unknown",
            state="what was computed is kept; main is unchanged",
            hint=f"set price.core_hour_usd in errata.yaml again, then: errata run {run_id}",
        )
    cores = count_worker_cores(job.workspace.project, job.workspace.product(job.manifest.product))
    spent = compute_usd(price, core_seconds(ledger.progress.attempts(run_id), cores, ledger.now()))
    if Decimal(spent) < Decimal(cap) or not ledger.progress.counts(run_id).pending:
        return
    try:
        ledger.runs.move(
            run_id, RunState.PAUSED, actor=job.actor, action="cost.capped", body={"usd": spent, "cap": cap}
        )
    except StateRefused:
        # another worker paused it for the same reason, or the run has ended: no chunk starts either way
        if ledger.runs.get(run_id).state is not RunState.PAUSED:
            return
    raise CostCapReached(
        f"run {run_id} was stopped; expected at most {cap} USD, found {spent} USD spent",
        state="what was computed is kept; main is unchanged",
        hint=f'plan again with --supersede {run_id} --override cost="WHY", or raise limits.max_usd first',
    )
