"""Plans a correction, once for each DAG run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.command import build_plan, build_status
from airflow.providers.errata.operators.base import ErrataOperator
from airflow.providers.errata.run_state import STUCK, find_planned, mark_reason
from airflow.sdk import Context

CHANGES_NOTHING = frozenset({"attest", "reconcile"})
"""Kinds of runs that a service account may ask for."""
TRIGGERED_BY = "{{ dag_run.triggering_user_name or '' }}"


class ErrataPlanOperator(ErrataOperator):
    """Plan a correction for approval; returns the id of the run.

    A plan is asked for by a person (``requested_by``, by default the one who triggered the DAG run). Errata refuses one
    by a service account, unless its kind changes nothing. The reason names the DAG run, and a later attempt of the same
    DAG run finds its plan by it and plans nothing. A plan whose run failed or was rejected is superseded. With
    ``stale``, the task is skipped when nothing is stale.
    """

    template_fields = ("product", "reason", "requested_by", "start", "end", "partitions", "canary")

    def __init__(
        self,
        *,
        product: str,
        reason: str,
        requested_by: str = TRIGGERED_BY,
        start: str | None = None,
        end: str | None = None,
        partitions: str | None = None,
        stale: bool = False,
        kind: str | None = None,
        canary: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.product = product
        self.reason = reason
        self.requested_by = requested_by
        self.start = start
        self.end = end
        self.partitions = partitions
        self.stale = stale
        self.kind = kind
        self.canary = canary

    def execute(self, context: Context) -> str:
        """Find the plan of this DAG run, or make it."""
        if not self.requested_by and self.kind not in CHANGES_NOTHING:
            raise AirflowFailException(
                "nothing was planned: a plan needs a person who asks for it, and nobody triggered this DAG run; "
                "set requested_by to someone with the role requester"
            )
        run = context["dag_run"]
        reason = mark_reason(self.reason, run.dag_id, run.run_id, self.task_id)
        earlier = find_planned(self._list_runs(), self.product, reason)
        if earlier and earlier["state"] not in STUCK:
            self.log.info("this DAG run has planned %s, which is %s", earlier["run_id"], earlier["state"])
            return str(earlier["run_id"])
        asked = build_plan(
            self.product, reason, start=self.start, end=self.end, partitions=self.partitions, stale=self.stale,
            kind=self.kind, canary=self.canary, supersede=earlier["run_id"] if earlier else None,
        )  # fmt: skip
        plan = self.require(asked, self.requested_by or None)
        self.log.info("planned %s with digest %s", plan["run_id"], plan["manifest_digest"])
        return str(plan["run_id"])

    def _list_runs(self) -> list[Mapping[str, Any]]:
        """All runs of the project; none before its first plan, which creates the ledger."""
        outcome = self.call(build_status())
        if outcome.error.get("code") == "not-found":
            return []
        return list(self.judge("status", outcome).get("runs", ()))
