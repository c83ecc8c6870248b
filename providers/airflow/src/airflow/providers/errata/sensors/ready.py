"""Waits until partitions may be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.errata.command import build_ready
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Command
from airflow.providers.errata.operators.base import require_done
from airflow.providers.errata.outcome import NOT_YET
from airflow.sdk import BaseSensorOperator, Context, PokeReturnValue


class ErrataReadySensor(BaseSensorOperator):
    """Wait until no correction of these partitions is being published or settled; returns their snapshots.

    The result is true for the moment: a task that takes long reads the table at the snapshot of each partition.
    """

    template_fields = ("table", "partitions")

    def __init__(
        self,
        *,
        table: str,
        partitions: Sequence[str] = (),
        errata_conn_id: str = ErrataHook.default_conn_name,
        mode: str = "reschedule",
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, **kwargs)
        self.table = table
        self.partitions = partitions
        self.errata_conn_id = errata_conn_id

    def poke(self, context: Context) -> PokeReturnValue:  # noqa: ARG002 (Airflow passes it)
        """Look once."""
        installation = ErrataHook(self.errata_conn_id).get_conn()
        outcome = Command(installation, self.log.info).run(build_ready(self.table, self.partitions))
        if outcome.exit_code == NOT_YET:
            return PokeReturnValue(is_done=False)
        found = require_done("ready", outcome)["partitions"]
        snapshots = {one["partition"]: one["snapshot_id"] for one in found}
        return PokeReturnValue(is_done=True, xcom_value=snapshots)
