"""Methods of the client that plan, approve, run and roll back a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.client.open_project import Partitions
from errata.client.upkeep import Upkeep
from errata.commands import campaign, plan
from errata.text.escape import require_one_line

if TYPE_CHECKING:
    from errata.model.audit import Actor
    from errata.planning.request import Request
    from errata.views.campaign import CampaignPlanView, CampaignRollbackView, CampaignView


class Campaigns(Upkeep):
    """One correction of a product and of the products that read it."""

    def plan_campaign(
        self,
        product: str,
        start: str | None = None,
        end: str | None = None,
        *,
        partitions: Partitions = None,
        reason: str,
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        kind: str = "restate",
        order: str | None = None,
        canary: int | str = 0,
        restore: str | None = None,
        supersede: str | None = None,
        overrides: Mapping[str, str] | None = None,
        stale: bool = False,
        dry_run: bool = False,
        as_: str | None = None,
    ) -> CampaignPlanView:
        """Plan a product and every product that reads it, for one approval.

        ``only`` and ``without`` choose among the products that read it. ``supersede`` is a campaign whose place it
        takes, or a run of the product. ``stale`` begins with the stale partitions, of the range or list or of all.

        Example: campaign = client.plan_campaign("ops.hourly", partitions="2026-02-01T23", reason="late", as_="ana")
        """
        actor = self._actor(as_)
        request = self._build_request(
            actor, product, start, end, partitions, reason=reason, kind=kind, restore=restore, overrides=overrides,
            stale=stale, order=order, canary=canary, supersede=supersede,
        )  # fmt: skip
        return campaign.plan.plan_campaign(
            self._workspace, actor, request, only=only, without=without, dry_run=dry_run
        )  # fmt: skip

    def _build_request(
        self,
        actor: Actor,
        product: str,
        start: str | None,
        end: str | None,
        partitions: Partitions,
        *,
        reason: str,
        kind: str,
        restore: str | None,
        overrides: Mapping[str, str] | None,
        stale: bool,
        **options: Any,
    ) -> Request:
        """What a person asks to be planned, alone or as the first member of a campaign."""
        from errata.model.manifest import Override
        from errata.planning.request import Request

        if kind == "restate" and (restore is not None or options.get("restore_from") is not None):
            kind = "restore"
        if options.get("copies") is not None and kind in ("restate", "repair"):
            kind = "repair_copies"
        if stale:
            partitions = plan.stale.find_stale_scope(self._workspace, product, start, end, partitions)
            start = end = None
        named = tuple(
            Override(rule, require_one_line(f"--override {rule}", why)) for rule, why in (overrides or {}).items()
        )
        return Request(
            product, require_one_line("--reason", reason), actor.person, start, end, partitions, kind,
            overrides=named, restore=restore, **options,
        )  # fmt: skip

    def find_campaign(self, text: str) -> str | None:
        """The id of the campaign that a person means by an id or a unique part of one; None if it is no campaign.

        Example: client.find_campaign("7f3a21c0")
        """
        if not self._workspace.ledger.exists():
            return None
        found = self._workspace.ledger.campaigns.find(text)
        return found.campaign_id if found else None

    def show_campaign(self, campaign_id: str) -> CampaignPlanView:
        """A campaign as it is approved.

        Example: client.show_campaign(campaign.campaign_id)
        """
        return campaign.show.show_campaign(self._workspace, campaign_id)

    def campaign_bytes(self, campaign_id: str) -> bytes:
        """The exact bytes of a sealed campaign.

        Example: client.campaign_bytes(campaign.campaign_id)
        """
        campaigns = self._workspace.ledger.campaigns
        return campaigns.content(campaigns.get(campaign_id).campaign_id)

    def campaign(self, campaign_id: str, *, as_: str | None = None) -> CampaignView:
        """Where a campaign is: every member with its run and state.

        Example: client.campaign(campaign.campaign_id).members
        """
        return campaign.status.build_campaign_status(self._workspace, self._actor(as_), campaign_id)

    def approve_campaign(
        self, campaign_id: str, *, digest: str | None, note: str = "", as_: str | None = None
    ) -> CampaignView:
        """Approve the campaign with this digest; every member still needs what its own product asks for.

        Example: client.approve_campaign(campaign.campaign_id, digest=campaign.campaign_digest, as_="bo")
        """
        said = require_one_line("--note", note)
        return campaign.decide.approve_campaign(self._workspace, self._actor(as_), campaign_id, digest, said)

    def decline_campaign(self, campaign_id: str, *, note: str, as_: str | None = None) -> CampaignView:
        """Decline the campaign; this is final, and ends its runs that are not published.

        Example: client.decline_campaign(campaign.campaign_id, note="wrong month", as_="bo")
        """
        said = require_one_line("--reason", note)
        return campaign.decide.decline_campaign(self._workspace, self._actor(as_), campaign_id, said)

    def cancel_campaign(self, campaign_id: str, *, reason: str, as_: str | None = None) -> CampaignView:
        """End a campaign: no member starts any more, and its runs that are not published are cancelled.

        Example: client.cancel_campaign(campaign.campaign_id, reason="wrong month", as_="ana")
        """
        why = require_one_line("--reason", reason)
        return campaign.decide.cancel_campaign(self._workspace, self._actor(as_), campaign_id, why)

    def run_campaign(
        self, campaign_id: str, *, publish: bool = False, parallel: int = 2, as_: str | None = None
    ) -> CampaignView:
        """Bring every member as far as it goes: seal, compute, judge and, with ``publish``, publish what may go.

        Example: client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
        """
        actor = self._actor(as_)
        return campaign.run.run_campaign(self._workspace, actor, campaign_id, publish=publish, parallel=parallel)

    def roll_back_campaign(
        self,
        campaign_id: str,
        *,
        member: str | None = None,
        leave: Mapping[str, str] | None = None,
        reason: str | None = None,
        as_: str | None = None,
    ) -> CampaignRollbackView:
        """Undo a campaign, or a member with what follows from it; without a reason, show what can go back.

        Example: client.roll_back_campaign(campaign.campaign_id, reason="wrong rate", as_="bo")
        """
        stay = {name: require_one_line(f"--leave {name}", why) for name, why in (leave or {}).items()}
        return campaign.rollback.roll_back_campaign(
            self._workspace, self._actor(as_), campaign_id, member=member, leave=stay, reason=reason
        )  # fmt: skip
