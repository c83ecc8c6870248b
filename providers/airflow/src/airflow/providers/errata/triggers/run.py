"""Waits for a run: until it is approved, computed or released."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.command import build_pause, build_status
from airflow.providers.errata.installation import Installation, ask
from airflow.providers.errata.outcome import Course, choose_course, describe_outcome
from airflow.providers.errata.run_state import AIMS, Progress
from airflow.triggers.base import BaseTrigger, TriggerEvent

SHOWN = ("run_id", "product", "state", "next", "failures", "held", "release")
"""Fields of the status that an event has: enough to end the task, and small."""


def read_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of the run in an event; fails the task if it could not be read."""
    if problem := event.get("problem"):
        raise AirflowFailException(problem)
    status: Mapping[str, Any] = event["status"]
    return status


class ErrataRunTrigger(BaseTrigger):
    """Reads the status of a run every ``seconds`` seconds, until ``aim`` is reached or cannot be any more."""

    def __init__(
        self, installation: dict[str, Any], run_id: str, aim: str, seconds: float, *, pause_when_killed: bool = False
    ) -> None:
        super().__init__()
        self.installation = installation
        self.run_id = run_id
        self.aim = aim
        self.seconds = seconds
        self.pause_when_killed = pause_when_killed

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments, as Airflow stores them."""
        return "airflow.providers.errata.triggers.run.ErrataRunTrigger", {
            "installation": self.installation, "run_id": self.run_id, "aim": self.aim, "seconds": self.seconds,
            "pause_when_killed": self.pause_when_killed,
        }  # fmt: skip

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until it has happened; a ledger that does not answer is asked again."""
        while True:
            outcome = await ask(Installation(**self.installation), build_status(self.run_id))
            course = choose_course(outcome)
            if course is Course.FAIL:
                yield TriggerEvent({"problem": describe_outcome("status", outcome)})
                return
            if course is Course.DONE and AIMS[self.aim](outcome.answer) is not Progress.WAITING:
                yield TriggerEvent({"status": {key: outcome.answer[key] for key in SHOWN if key in outcome.answer}})
                return
            self.log.info("%s is %s", self.run_id, outcome.answer.get("state", describe_outcome("status", outcome)))
            await asyncio.sleep(self.seconds)

    async def on_kill(self) -> None:
        """A person has ended the task: pause the run, if that is wanted (from Airflow 3.3 on)."""
        if self.pause_when_killed:
            await ask(Installation(**self.installation), build_pause(self.run_id))
