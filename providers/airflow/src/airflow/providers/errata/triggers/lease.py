"""Waits until no correction freezes some partitions, for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.providers.errata.command import build_live_check
from airflow.providers.errata.installation import Installation, ask
from airflow.providers.errata.outcome import Course, choose_course
from airflow.triggers.base import BaseTrigger, TriggerEvent


class ErrataLeaseTrigger(BaseTrigger):
    """Asks every ``seconds`` seconds whether partitions are frozen, until they are not or ``until`` has come.

    An Errata that does not answer is asked again.
    """

    def __init__(
        self, installation: dict[str, Any], table: str, partitions: str | None, until: str, seconds: float
    ) -> None:
        super().__init__()
        self.installation = installation
        self.table = table
        self.partitions = partitions
        self.until = until
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments, as Airflow stores them."""
        return "airflow.providers.errata.triggers.lease.ErrataLeaseTrigger", {
            "installation": self.installation, "table": self.table, "partitions": self.partitions,
            "until": self.until, "seconds": self.seconds,
        }  # fmt: skip

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until it is free or time is over; the task tries to get the lease either way."""
        end = datetime.fromisoformat(self.until)
        while (left := (end - datetime.now(UTC)).total_seconds()) > 0:
            look = build_live_check(self.table, self.partitions)
            if choose_course(await ask(Installation(**self.installation), look, at_most=left)) is not Course.RETRY:
                break
            await asyncio.sleep(min(self.seconds, left))
        yield TriggerEvent({"until": self.until})
