"""Methods of the Client about late data: what is stale, what to do about it, and approvals in advance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.client.open_project import OpenProject, Partitions
from errata.commands import compute, look, plan
from errata.text.escape import require_one_line

if TYPE_CHECKING:
    from errata.views.late import LateView, StandingsView, StandingView
    from errata.views.stale import StaleView


class LateData(OpenProject):
    """Find partitions that no longer follow from their inputs, and act on them."""

    def stale(
        self,
        product: str | None = None,
        start: str | None = None,
        end: str | None = None,
        *,
        partitions: Partitions = None,
    ) -> StaleView:
        """Which partitions of a product, or of all, no longer follow from their inputs, and why.

        Example: [one.partition for one in client.stale("fin.daily_revenue").partitions if one.state == "stale"]
        """
        return look.stale.show_stale(self._workspace, product, start, end, partitions)

    def late(self, product: str | None = None, *, parallel: int = 2, as_: str | None = None) -> LateView:
        """Look once for late data, and report, plan or run what the product files say.

        Example: client.late(as_="late-bot").products[0].run_id
        """
        return compute.late.look_for_late_data(self._workspace, self._actor(as_), product, parallel=parallel)

    def approve_standing(
        self,
        product: str,
        *,
        digest: str | None,
        changes: Mapping[str, str],
        oldest: str = "30d",
        partitions_per_run: int = 7,
        runs_per_day: int = 4,
        partitions_per_day: int = 14,
        valid: str = "90d",
        note: str = "",
        as_: str | None = None,
    ) -> StandingView:
        """Approve in advance runs of ``late`` within limits; without a digest, refuse and show what would be signed.

        ``changes`` maps ``rows`` and metrics to the largest change of a partition.

        Example: client.approve_standing("fin.daily_revenue", digest=sha, changes={"rows": "5%"}, as_="bo")
        """
        return plan.standing.approve_standing(
            self._workspace, self._actor(as_), product, digest, require_one_line("--note", note), oldest=oldest,
            partitions_per_run=partitions_per_run, runs_per_day=runs_per_day, partitions_per_day=partitions_per_day,
            changes=changes, valid=valid,
        )  # fmt: skip

    def revoke_standing(self, product: str, *, note: str, as_: str | None = None) -> StandingsView:
        """Revoke every standing approval of a product.

        Example: client.revoke_standing("fin.daily_revenue", note="books are closed", as_="bo")
        """
        return plan.standing.revoke_standing(
            self._workspace, self._actor(as_), product, require_one_line("--note", note)
        )

    def standing(self, product: str | None = None) -> StandingsView:
        """Standing approvals of a product or of all, with what used them.

        Example: [one.digest for one in client.standing().standing if one.counts]
        """
        return plan.standing.show_standing(self._workspace, product)
