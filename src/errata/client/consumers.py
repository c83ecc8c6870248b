"""Methods of the Client about consumers: what a publication does to them, what is owed and paid, what is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.client.open_project import OpenProject, Partitions
from errata.commands import consumers
from errata.text.escape import require_one_line

if TYPE_CHECKING:
    from errata.views.consumers import ConfirmView, ConsumersView
    from errata.views.copies import BaselineView, CopiesCheckView
    from errata.views.outbox import DeliverView, OutboxDecisionView, OutboxView
    from errata.views.readiness import HoldView, ReadyView


class Consumers(OpenProject):
    """Follow a correction to the people and programs that read it."""

    def check_consumers(
        self, product: str, start: str | None = None, end: str | None = None, *, partitions: Partitions = None
    ) -> ConsumersView:
        """What a publication of these partitions, or of any, does to the consumers of a product.

        Example: [one.name for one in client.check_consumers("fin.daily_revenue").consumers if one.effect == "stops"]
        """
        return consumers.check.check_consumers(self._workspace, product, start, end, partitions)

    def confirm_consumer(self, run_id: str, consumer: str, *, as_: str | None = None) -> ConfirmView:
        """Confirm that a stream was stopped before a publication, or started on its repaired checkpoint after it.

        Example: client.confirm_consumer(run.id, "fraud-stream", as_="kim").is_done
        """
        return consumers.confirm.confirm_reader(self._workspace, self._actor(as_), run_id, consumer)

    def outbox(self, run_id: str | None = None, *, all: bool = False) -> OutboxView:  # noqa: A002
        """What is owed because of a run, or at all; with ``all`` also what is paid or waived.

        Example: [item.consumer for item in client.outbox(run.id).items if item.state == "failed"]
        """
        return consumers.outbox.show_outbox(self._workspace, run_id, all_items=all)

    def retry_outbox(
        self, ids: Sequence[str] = (), *, failed: bool = False, as_: str | None = None
    ) -> OutboxDecisionView:
        """Let items be tried at once, with all attempts again; ``failed`` means all that failed.

        Example: client.retry_outbox(failed=True, as_="ana")
        """
        return consumers.outbox.retry_items(self._workspace, self._actor(as_), ids, failed=failed)

    def waive_outbox(
        self,
        item_id: str,
        *,
        reason: str,
        ready: bool = False,
        as_: str | None = None,
    ) -> OutboxDecisionView:
        """Give up paying an item; what it would have done stays undone. ``ready`` lets readers continue all the same.

        Example: client.waive_outbox("17", reason="the dashboard is switched off", as_="bo")
        """
        said = require_one_line("--reason", reason)
        return consumers.outbox.waive_item(self._workspace, self._actor(as_), item_id, said, ready=ready)

    def deliver(self, of: str | None = None, *, timeout: str = "5min", as_: str | None = None) -> DeliverView:
        """Pay what is owed for a product, because of a run, or at all.

        Example: client.deliver("fin.daily_revenue", timeout="1min", as_="cron").ok
        """
        return consumers.deliver.deliver(self._workspace, self._actor(as_), of, timeout=timeout)

    def ready(self, table: str, partitions: str | Sequence[str] | None = None, *, wait: str = "0s") -> ReadyView:
        """Whether partitions of a table or product may be read (default: all); ``wait`` waits until they may.

        Reads the ledger and nothing else.

        Example: client.ready("fin.daily_revenue", ["2026-01-13"], wait="30min").ready
        """
        return consumers.ready.show_ready(self._workspace, table, partitions, wait)

    def acknowledge(self, run_id: str, consumer: str, *, hold: str | None = None, as_: str | None = None) -> HoldView:
        """Acknowledge the hold of a consumer, as its owner; ``hold`` is the one that was seen (default: the open one).

        Example: client.acknowledge(run.id, "exec-dashboard", hold=hold_id, as_="di")
        """
        return consumers.acknowledge.acknowledge_hold(self._workspace, self._actor(as_), run_id, consumer, hold)

    def show_hold(self, run_id: str, consumer: str, *, hold: str | None = None) -> HoldView:
        """The hold that :meth:`acknowledge` would acknowledge.

        Example: client.show_hold(run.id, "exec-dashboard").until
        """
        return consumers.acknowledge.show_hold(self._workspace, run_id, consumer, hold)

    def baseline(
        self,
        product: str,
        *,
        partitions: str | None = None,
        copy: str | None = None,
        reason: str | None = None,
        as_: str | None = None,
    ) -> BaselineView:
        """Compare the copies of a product with main; with a reason, accept what they hold as their beginning.

        Example: [one.differing for one in client.baseline("fin.daily_revenue", as_="bo").copies]
        """
        said = None if reason is None else require_one_line("--reason", reason)
        return consumers.baseline.accept_baseline(
            self._workspace, self._actor(as_), product, partitions, copy=copy, reason=said
        )

    def check_copies(
        self, product: str, start: str | None = None, end: str | None = None, *, partitions: Partitions = None
    ) -> CopiesCheckView:
        """Compare each copy of a product with the lake: these partitions, or all that were delivered. Only reads.

        Example: [one.partition for copy in client.check_copies("fin.daily_revenue").copies for one in copy.differing]
        """
        return consumers.copies.check_copies(self._workspace, product, start, end, partitions)
