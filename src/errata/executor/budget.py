"""What a run has cost so far, and the hard stop at the cap of its plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from errata.errors import CostCapReached, StateRefused
from errata.executor.attempting import Job
from errata.ledger import AttemptRecord
from errata.model.run import RunState
from errata.planner.estimate import busy_seconds, cores_for, dollars

__all__ = ["core_seconds", "stop_at_cap"]


def core_seconds(attempts: Iterable[AttemptRecord], cores: int, now: str) -> float:
    """Seconds in which each worker had a chunk in hand, times its cores: what a cluster charges for. Pure."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for attempt in attempts:
        start, end = (datetime.fromisoformat(at).timestamp() for at in (attempt.started_at, attempt.ended_at or now))
        spans[f"{attempt.owner.host}/{attempt.owner.pid}/{attempt.owner.started}"].append((start, end))
    return sum(busy_seconds(worker) for worker in spans.values()) * cores


def stop_at_cap(job: Job) -> None:
    """Pause the run and raise when it has cost what its plan allows; a plan that set the rule aside goes on."""
    cap, price = job.manifest.limits.max_usd, job.desk.project.core_hour_usd
    if cap is None or Decimal(price) == 0 or any(override.rule == "cost" for override in job.manifest.overrides):
        return
    ledger, run_id = job.desk.ledger, job.run.run_id
    cores = cores_for(job.desk.project, job.desk.product(job.manifest.product))
    spent = dollars(price, core_seconds(ledger.attempts(run_id), cores, ledger.now()))
    if Decimal(spent) < Decimal(cap):
        return
    try:
        ledger.move(run_id, RunState.PAUSED, actor=job.actor, action="cost.capped", body={"usd": spent, "cap": cap})
    except StateRefused:
        # paused, cancelled or finished by someone else: no chunk is taken either way
        pass
    raise CostCapReached(
        f"run {run_id} was stopped; expected at most {cap} USD, found {spent} USD spent",
        state="what was computed is kept; main is unchanged",
        hint=f'plan again with --supersede {run_id} --override cost="WHY", or raise limits.max_usd first',
    )
