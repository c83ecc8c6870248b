"""Waits for a decision that a person makes in Errata, and shows it in Airflow meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.command import build_status
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Command, Installation
from airflow.providers.errata.operators.base import require_done
from airflow.providers.errata.run_state import AIMS, Progress, describe_decision, describe_status
from airflow.providers.errata.triggers.run import ErrataRunTrigger, read_event
from airflow.sdk import BaseSensorOperator, Context, conf
from airflow.sdk.execution_time.hitl import upsert_hitl_detail

ANSWER = "I have decided in Errata"
"""The one answer that Airflow offers. It decides nothing: only the ledger is read."""


class _DecisionSensor(BaseSensorOperator):
    """Base of sensors that read the ledger until people have decided."""

    aim: ClassVar[str]
    template_fields = ("run_id",)

    def __init__(
        self,
        *,
        run_id: str,
        errata_conn_id: str = ErrataHook.default_conn_name,
        show: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        mode: str = "reschedule",
        poke_interval: float = 30,
        timeout: float = timedelta(days=7).total_seconds(),
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, poke_interval=poke_interval, timeout=timeout, **kwargs)
        self.run_id = run_id
        self.errata_conn_id = errata_conn_id
        self.show = show
        self.deferrable = deferrable

    @cached_property
    def installation(self) -> Installation:
        """What the connection describes."""
        return ErrataHook(self.errata_conn_id).get_conn()

    def execute(self, context: Context) -> Any:
        """Show the decision among Airflow's required actions, then wait for it."""
        status = self._read_status()
        if self._judge(status) is Progress.REACHED:
            return self.run_id
        if self.show:
            self._show_decision(context, status)
        if not self.deferrable:
            return super().execute(context)
        return self.defer(
            trigger=ErrataRunTrigger(
                installation=self.installation.to_data(), run_id=self.run_id, aim=self.aim, seconds=self.poke_interval
            ),
            timeout=timedelta(seconds=self.timeout),
            method_name="execute_complete",
        )

    def poke(self, context: Context) -> bool:  # noqa: ARG002 (Airflow passes it)
        """Whether the ledger has the decision."""
        return self._judge(self._read_status()) is Progress.REACHED

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:  # noqa: ARG002 (Airflow passes it)
        """Continue after the trigger has seen the decision."""
        self._judge(read_event(event))
        return self.run_id

    def _read_status(self) -> Mapping[str, Any]:
        outcome = Command(self.installation, self.log.info).run(build_status(self.run_id))
        return require_done("status", outcome)

    def _judge(self, status: Mapping[str, Any]) -> Progress:
        progress = AIMS[self.aim](status)
        if progress is Progress.ENDED:
            raise AirflowFailException(f"there will be no {self.aim}: {describe_status(status)}")
        self.log.info(describe_status(status))
        return progress

    def _show_decision(self, context: Context, status: Mapping[str, Any]) -> None:
        subject, body = describe_decision(self.aim, status, self.installation.project)
        upsert_hitl_detail(ti_id=context["ti"].id, options=[ANSWER], subject=subject, body=body, params={})
        self.log.info("%s\n%s", subject, body)


class ErrataApprovalSensor(_DecisionSensor):
    """Wait until people have approved the plan in Errata; fails if they decline it or it is cancelled."""

    aim = "approval"


class ErrataReleaseSensor(_DecisionSensor):
    """Wait until a person has released the candidate in Errata, which lets a service account publish it."""

    aim = "release"
