"""Publishes a candidate, or restores what it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.assets import build_alias, build_asset, list_changes
from airflow.providers.errata.command import build_publish, build_rollback
from airflow.providers.errata.operators.base import ErrataOperator
from airflow.providers.errata.operators.plan import TRIGGERED_BY
from airflow.sdk import Context


class _ChangesTable(ErrataOperator):
    """Base of operators that change what readers see: each range of partitions becomes one asset event."""

    def __init__(self, *, product: str | None, outlets: Sequence[Any] = (), **kwargs: Any) -> None:
        super().__init__(outlets=[*outlets, *([build_alias(product)] if product else [])], **kwargs)
        self.product = product

    def add_events(self, context: Context, run_id: str, kind: str) -> None:
        """One event for each range that the run has published, or rolled back."""
        if not self.product:
            return
        status = self.read_status(run_id)
        events = context["outlet_events"][build_alias(self.product)]
        for extra in list_changes(status, kind):
            events.add(build_asset(self.product), extra=extra)
            self.log.info("%s %s to %s, snapshot %s", kind, extra["first"], extra["last"], extra["snapshot_id"])


class ErrataPublishOperator(_ChangesTable):
    """Publish a validated candidate; returns the id of the run.

    A service account publishes what a person has released, or a product that needs no person. With ``wait`` all waves
    are published, and consumers that are held are waited for. A conflict with a live write fails the task and is not
    retried. With ``product``, every published range of partitions is an event of ``build_asset(product)``.
    """

    template_fields = ("run_id", "partitions")

    def __init__(
        self,
        *,
        run_id: str,
        product: str | None = None,
        partitions: str | None = None,
        wait: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(product=product, **kwargs)
        self.run_id = run_id
        self.partitions = partitions
        self.wait = wait

    def execute(self, context: Context) -> str:
        """Publish; repeating it changes nothing."""
        self.require(build_publish(self.run_id, self.partitions, wait=self.wait))
        self.add_events(context, self.run_id, "publish")
        return self.run_id


class ErrataRollbackOperator(_ChangesTable):
    """Restore the rows that a run replaced; returns the id of the run.

    A person decides that (``decided_by``, by default the one who triggered the DAG run), with the role publisher.
    """

    template_fields = ("run_id", "reason", "decided_by", "partitions")

    def __init__(
        self,
        *,
        run_id: str,
        reason: str,
        decided_by: str = TRIGGERED_BY,
        product: str | None = None,
        partitions: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(product=product, **kwargs)
        self.run_id = run_id
        self.reason = reason
        self.decided_by = decided_by
        self.partitions = partitions

    def execute(self, context: Context) -> str:
        """Roll back; repeating it changes nothing."""
        if not self.decided_by:
            raise AirflowFailException(
                "nothing was rolled back: a person decides that, and nobody triggered this DAG run; set decided_by"
            )
        self.require(build_rollback(self.run_id, self.reason, self.partitions), self.decided_by)
        self.add_events(context, self.run_id, "rollback")
        return self.run_id
