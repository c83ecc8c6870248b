"""Campaigns on a real ledger and tables in memory: hour → day → month, and a rolling sum with look-back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from errata.canonical import canonical_bytes, sha256
from errata.commands.campaign.member_state import read_campaign
from errata.commands.campaign.seal import seal_member
from errata.errors import (
    ApprovalRefused,
    Drifted,
    InputWithdrawn,
    NotFound,
    PlanRefused,
    ScopeLocked,
    StateRefused,
    UsageError,
    ValidationRejected,
)
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.campaign.derivation import derive_manifest
from errata.views.campaign import CampaignPlanView, CampaignView
from support.graph_world import PRODUCTS, GraphWorld

HOUR = "2026-02-01T23"
MEMBERS = ["ops.hourly", "ops.daily", "ops.monthly", "ops.rolling"]
TABLES = ("ops.hourly", "ops.daily", "ops.monthly", "ops.rolling")
ITSELF = {name: text + "publish: {manual: false}\n" for name, text in PRODUCTS.items()}
"""The same products, published by themselves when their gate is clean."""
PEOPLE = """
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
  cy: {roles: [operator, publisher]}
"""
Make = Callable[..., GraphWorld]


class Killed(BaseException):
    """The process is gone; nothing catches it."""


@pytest.fixture
def make_graph(tmp_path: Path) -> Iterator[Make]:
    """Makes a project of four products whose events were corrected late: the hour of HOUR is wrong in all of them."""
    made: list[GraphWorld] = []

    def make(*, people: str = PEOPLE, products: Mapping[str, str] | None = None) -> GraphWorld:
        root = tmp_path / f"graph{len(made)}"
        root.mkdir()
        world = GraphWorld.make(root)
        made.append(world)
        text = (root / "errata.yaml").read_text()
        for name, changed in (products or {}).items():
            (root / f"products/{name}.yaml").write_text(changed)
        world.write("errata.yaml", text[: text.index("\npeople:")] + people + text[text.index("limits:") :])
        world.change("2026-02-01T23:00", 1000)
        return world

    yield make
    for world in made:
        world.client.close()


HOUR_BEFORE, HOUR_AFTER = "2026-02-01T22", "2026-02-02T00"


def plan(world: GraphWorld, product: str = "ops.hourly", partitions: str = HOUR, **options: Any) -> CampaignPlanView:
    """A campaign of the late hour."""
    return world.client.plan_campaign(product, partitions=partitions, reason="late events", as_="ana", **options)


def approve(world: GraphWorld, campaign: CampaignPlanView, *people: str) -> None:
    """Approvals of a campaign."""
    for person in people or ("bo",):
        world.client.approve_campaign(campaign.campaign_id, digest=campaign.campaign_digest, as_=person)


def states(view: CampaignView) -> dict[str, str]:
    """State of each member."""
    return {one.product: one.state for one in view.members}


def walk(world: GraphWorld, campaign: CampaignPlanView) -> CampaignView:
    """Run it and publish everything, as two people do."""
    while True:
        view = world.client.run_campaign(campaign.campaign_id, as_="ana")
        waiting = [one.run_id for one in view.members if one.state == "validated"]
        if not waiting:
            return view
        for run_id in waiting:
            world.client.publish(run_id, as_="bo")


def content(world: GraphWorld) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table."""
    return {name: world.rows(name) for name in TABLES}


def live_write(world: GraphWorld, table: str, **row: Any) -> None:
    """A live job overwrites a partition."""
    world.lake.table(f"lake.{table}").overwrite([row])


# ----------------------------------------------------------------------------------------------------------- planning


def test_a_plan_seals_every_member_in_order_under_one_digest(make_graph: Make) -> None:
    """The members, their exact partitions and what each comes after; the same request gives the same campaign."""
    world = make_graph()
    found = plan(world)
    assert [(one.product, one.partitions, one.after) for one in found.members] == [
        ("ops.hourly", (HOUR,), ()),
        ("ops.daily", ("2026-02-01",), ("ops.hourly",)),
        ("ops.monthly", ("2026-02",), ("ops.daily",)),
        ("ops.rolling", ("2026-02-01", "2026-02-02"), ("ops.daily",)),
    ]
    assert sha256(world.client.campaign_bytes(found.campaign_id)) == found.campaign_digest
    again = plan(world)
    assert (again.already, again.campaign_id) == (True, found.campaign_id)
    assert world.client.campaign(found.campaign_id).next == (f"errata approve {found.campaign_id} --as bo",)


def test_a_campaign_can_begin_with_what_is_stale(make_graph: Make) -> None:
    """`--stale --cascade` takes the stale partitions of the product, and from there what reads them."""
    world = make_graph()
    first = plan(world)
    approve(world, first)
    walk(world, first)
    world.change("2026-02-01T22:00", 2000)
    found = world.client.plan_campaign(
        "ops.hourly", HOUR_BEFORE, HOUR_AFTER, stale=True, reason="late again", as_="ana"
    )
    assert [(one.product, list(one.partitions)) for one in found.members][:2] == [
        ("ops.hourly", ["2026-02-01T22"]),
        ("ops.daily", ["2026-02-01"]),
    ]


def test_a_dry_run_records_nothing(make_graph: Make) -> None:
    """The members are shown, and there is no campaign."""
    world = make_graph()
    found = plan(world, dry_run=True)
    assert len(found.members) == 4
    assert world.client.find_campaign(found.campaign_id) is None


def test_what_only_an_excluded_member_connects_is_left_out_with_it(make_graph: Make) -> None:
    """Nothing that it reads changes, so it has nothing to follow."""
    world = make_graph()
    found = plan(world, without=["ops.daily"])
    assert [one.product for one in found.members] == ["ops.hourly"]
    assert found.left_out["ops.daily"] == "as asked; it stays as it is"
    assert "ops.daily" in found.left_out["ops.monthly"]


def test_only_takes_the_named_members(make_graph: Make) -> None:
    """Readers that are not named stay as they are."""
    found = plan(make_graph(), only=["ops.daily", "ops.monthly"])
    assert [one.product for one in found.members] == ["ops.hourly", "ops.daily", "ops.monthly"]
    assert list(found.left_out) == ["ops.rolling"]


@pytest.mark.parametrize(
    "options, kind, said",
    [
        ({"only": ["ops.month"]}, NotFound, "--only ops.month was refused; it is not a product"),
        ({"without": ["ops.hourly"]}, UsageError, "is where the correction begins"),
        ({"only": ["ops.monthly"]}, UsageError, "ops.monthly reads ops.hourly only through ops.daily"),
        ({"only": ["ops.daily"], "without": ["ops.rolling"]}, UsageError, "expected one of the two"),
        ({"kind": "attest"}, UsageError, "--cascade with kind attest was refused"),
    ],
)
def test_wrong_members_are_refused_by_name(
    make_graph: Make, options: dict[str, Any], kind: type[Exception], said: str
) -> None:
    """A name that is no member, or a choice that hangs in the air, costs a sentence and no campaign."""
    world = make_graph()
    with pytest.raises(kind, match=said):
        plan(world, **options)
    assert not world.workspace.ledger.campaigns.list()


def test_a_cycle_of_products_is_refused_by_name(make_graph: Make) -> None:
    """No order exists in which they could be computed."""
    cycle = PRODUCTS["hourly"].replace(
        "reconcile:", "  back: {table: lake.ops.daily, partition: day, grain: day}\nreconcile:"
    )
    world = make_graph(products={"hourly": cycle})
    with pytest.raises(UsageError, match=r"ops.daily → ops.hourly → ops.daily form a cycle"):
        plan(world)


def test_a_member_whose_partitions_cannot_be_derived_is_refused(make_graph: Make) -> None:
    """An input that is read whole would touch everything; that is never done silently."""
    whole = PRODUCTS["rolling"].replace("partition: day, lookback: 2d", "reference: current")
    world = make_graph(products={"rolling": whole})
    with pytest.raises(UsageError, match=r"ops.rolling cannot be a member.*input days is read whole") as refused:
        plan(world)
    assert "--except ops.rolling" in (refused.value.hint or "")
    assert [one.product for one in plan(world, without=["ops.rolling"]).members] == MEMBERS[:3]


def test_a_guardrail_of_a_member_refuses_the_campaign(make_graph: Make) -> None:
    """The plan names the member and the rule; nothing is sealed."""
    locked = PRODUCTS["monthly"] + 'protect: {locked: ["2026-02"]}\n'
    world = make_graph(products={"monthly": locked})
    with pytest.raises(PlanRefused, match=r"ops.monthly: locked: 2026-02 is locked"):
        plan(world)


def test_a_product_that_reads_its_own_output_takes_its_later_partitions_along(make_graph: Make) -> None:
    """A scope that stops in the middle would leave later partitions computed from what was wrong."""
    own = PRODUCTS["rolling"].replace("lookback: 2d}", "lookback: 2d}\n  before: {own: true, lookback: 1d}")
    world = make_graph(products={"rolling": own})
    with pytest.raises(UsageError, match="2026-02-02 follows"):
        plan(world, "ops.rolling", "2026-02-01")


# ----------------------------------------------------------------------------------------------------------- approval


def test_each_member_needs_the_approvals_of_its_own_product(make_graph: Make) -> None:
    """One signature covers the members whose rule it meets, and no other."""
    finance = PRODUCTS["monthly"] + "approval: {quorum: 2}\n"
    people = PEOPLE + "  fay: {roles: [approver], teams: [finance]}\n"
    world = make_graph(products={"monthly": finance}, people=people)
    campaign = plan(world)
    approve(world, campaign, "bo")
    assert states(world.client.campaign(campaign.campaign_id)) == {
        "ops.hourly": "ready", "ops.daily": "waiting", "ops.monthly": "not_approved", "ops.rolling": "waiting",
    }  # fmt: skip
    view = walk(world, campaign)
    assert states(view) == {
        "ops.hourly": "published", "ops.daily": "published", "ops.monthly": "not_approved", "ops.rolling": "published",
    }  # fmt: skip
    record = world.workspace.ledger.campaigns.get(campaign.campaign_id)
    sealed = world.workspace.ledger.campaigns.manifest(campaign.campaign_id)
    with pytest.raises(ApprovalRefused, match="it is not approved: 1 of 2 approvals, one of finance is missing"):
        seal_member(world.workspace, Actor("ana", "ana", "here"), record, sealed, "ops.monthly")
    approve(world, campaign, "fay")
    assert set(states(walk(world, campaign)).values()) == {"published"}
    assert all(world.is_right(name) for name in TABLES)


def test_why_names_the_people_who_approved_the_campaign(make_graph: Make) -> None:
    """A number that a member changed leads to the approval that it was changed under."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    walk(world, campaign)
    event = world.client.why("lake.ops.daily", "2026-02-01").history[-1]
    assert (event.requested_by, event.approved_by) == ("ana", "bo")


def test_the_requester_and_strangers_cannot_approve_and_digests_must_fit(make_graph: Make) -> None:
    """The rules of an ordinary approval hold for a campaign."""
    world = make_graph()
    campaign = plan(world)
    client = world.client
    with pytest.raises(ApprovalRefused, match="is not the digest of the campaign"):
        client.approve_campaign(campaign.campaign_id, digest="0" * 64, as_="bo")
    with pytest.raises(ApprovalRefused, match="expected the digest"):
        client.approve_campaign(campaign.campaign_id, digest=None, as_="bo")
    for person in ("ana", "cy"):
        with pytest.raises(Exception, match="was refused"):
            client.approve_campaign(campaign.campaign_id, digest=campaign.campaign_digest, as_=person)
    assert set(states(client.campaign(campaign.campaign_id)).values()) == {"not_approved"}


def test_a_role_that_is_gone_at_publication_stops_the_member(make_graph: Make) -> None:
    """Approvals are counted with the roles of now, also when a member is published."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    (root, *_) = world.client.run_campaign(campaign.campaign_id, as_="ana").members
    text = (world.root / "errata.yaml").read_text()
    world.write("errata.yaml", text.replace("bo: {roles: [approver, publisher]}", "bo: {roles: [publisher]}"))
    with pytest.raises(ApprovalRefused, match="needs the role approver, now gone"):
        world.client.publish(root.run_id, as_="bo")


def test_a_member_is_not_approved_by_itself(make_graph: Make) -> None:
    """What was decided together is not decided again in part."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    (root, *_) = world.client.run_campaign(campaign.campaign_id, as_="ana").members
    shown = world.client.show(root.run_id)
    assert [one.person for one in shown.approvals] == ["bo"]
    with pytest.raises(ApprovalRefused, match="is a member of"):
        world.client.approve(root.run_id, digest=shown.manifest_digest, as_="bo")


def test_an_approved_campaign_reserves_the_partitions_of_its_members(make_graph: Make) -> None:
    """Other plans are refused by name until it is over; a plan in its place is possible."""
    world = make_graph()
    campaign = plan(world)
    assert not world.client.status().reserved
    approve(world, campaign)
    kept = {one.product: one.partitions for one in world.client.status().reserved}
    assert kept["ops.monthly"] == ("2026-02",)
    with pytest.raises(PlanRefused, match=f"overlap: campaign {campaign.campaign_id} .*holds 2026-02"):
        world.client.plan("ops.monthly", partitions="2026-02", reason="mine", as_="ana")
    with pytest.raises(PlanRefused, match=f"{campaign.campaign_id} has reserved"):
        plan(world, "ops.daily", "2026-02-01")
    later = plan(world, "ops.daily", "2026-02-01", supersede=campaign.campaign_id)
    approve(world, later)
    assert states(world.client.campaign(campaign.campaign_id))["ops.daily"] == "superseded"
    world.client.cancel_campaign(later.campaign_id, reason="not needed", as_="ana")
    world.client.cancel_campaign(campaign.campaign_id, reason="not needed", as_="ana")
    assert world.client.plan("ops.monthly", partitions="2026-02", reason="mine", as_="ana").state == "planned"


@pytest.mark.parametrize("end", ["cancelled", "expired", "declined"])
def test_a_member_goes_on_when_the_campaign_in_its_place_ended_without_it(make_graph: Make, end: str) -> None:
    """Its partitions are reserved again."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    if end == "expired":
        world.write("errata.yaml", (world.root / "errata.yaml").read_text() + "campaign: {valid_for: 0h}\n")
    later = plan(world, "ops.rolling", "2026-02-01..2026-02-02", supersede=campaign.campaign_id)
    if end == "cancelled":
        world.client.cancel_campaign(later.campaign_id, reason="not needed", as_="ana")
    elif end == "declined":
        world.client.decline_campaign(later.campaign_id, note="no", as_="bo")
    assert states(world.client.campaign(campaign.campaign_id))["ops.rolling"] == "waiting"
    assert "ops.rolling" in {one.product for one in world.client.status().reserved}
    assert states(walk(world, campaign))["ops.rolling"] == "published"


def test_a_member_that_was_corrected_in_its_place_stays_superseded(make_graph: Make) -> None:
    """Also when the later campaign is over: it is not computed a second time."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    later = plan(world, "ops.rolling", "2026-02-01..2026-02-02", supersede=campaign.campaign_id)
    approve(world, later)
    assert walk(world, later).state == "done"
    world.client.cancel_campaign(later.campaign_id, reason="it is done", as_="ana")
    assert states(walk(world, campaign))["ops.rolling"] == "superseded"


def test_a_campaign_that_cannot_start_says_so_by_its_exit_code(make_graph: Make) -> None:
    """A scheduler must not take it for done: nobody approved it, or it is over."""
    world = make_graph()
    campaign = plan(world)
    view = world.client.run_campaign(campaign.campaign_id, as_="ana")
    assert (states(view)["ops.hourly"], view.exit_code) == ("not_approved", StateRefused.exit_code)
    approve(world, campaign)
    assert world.client.run_campaign(campaign.campaign_id, as_="ana").exit_code == 0
    world.client.cancel_campaign(campaign.campaign_id, reason="not needed", as_="ana")
    assert world.client.run_campaign(campaign.campaign_id, as_="ana").exit_code == StateRefused.exit_code


def test_a_campaign_is_valid_for_the_sealed_time_only(make_graph: Make) -> None:
    """After that nothing is reserved and no member starts."""
    world = make_graph()
    text = (world.root / "errata.yaml").read_text()
    world.write("errata.yaml", text + "campaign: {valid_for: 0h}\n")
    campaign = plan(world)
    assert campaign.valid_for == "0h"
    with pytest.raises(StateRefused, match="expired since"):
        approve(world, campaign)
    assert not world.client.status().reserved
    assert set(states(world.client.run_campaign(campaign.campaign_id, as_="ana")).values()) == {"expired"}


# --------------------------------------------------------------------------------------------------------------- walk


def test_a_campaign_corrects_all_tables_in_order_and_rolls_them_back(make_graph: Make) -> None:
    """Each member starts when what it reads is published; reverse order brings back exactly what was there."""
    world = make_graph()
    before = content(world)
    campaign = plan(world)
    approve(world, campaign)
    seen = []
    while (view := world.client.run_campaign(campaign.campaign_id, as_="ana")).state != "done":
        seen.append(states(view))
        for one in view.members:
            if one.state == "validated":
                world.client.publish(one.run_id, as_="bo")
    assert [[name for name, state in one.items() if state == "validated"] for one in seen] == [
        ["ops.hourly"], ["ops.daily"], ["ops.monthly", "ops.rolling"],
    ]  # fmt: skip
    assert all(world.is_right(name) for name in TABLES)
    assert content(world) != before
    look = world.client.roll_back_campaign(campaign.campaign_id, as_="bo")
    assert not look.acted
    assert [one.product for one in look.members] == MEMBERS[::-1]
    assert all(world.is_right(name) for name in TABLES), "a look changes nothing"
    back = world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    assert [(one.product, one.state) for one in back.members] == [(name, "rolled_back") for name in MEMBERS[::-1]]
    assert content(world) == before
    assert world.workspace.ledger.audit.verify().ok


def test_one_command_publishes_members_whose_products_publish_themselves(make_graph: Make) -> None:
    """`run --publish` walks to the end; a product that wants a person waits for a release."""
    world = make_graph(products={**ITSELF, "daily": PRODUCTS["daily"]})
    campaign = plan(world)
    approve(world, campaign)
    view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    assert states(view) == {
        "ops.hourly": "published", "ops.daily": "validated", "ops.monthly": "waiting", "ops.rolling": "waiting",
    }  # fmt: skip
    daily = next(one.run_id for one in view.members if one.product == "ops.daily")
    digest = world.client.show(daily).release_digest
    world.client.release(daily, digest=digest, as_="bo")
    assert world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy").state == "done"
    assert all(world.is_right(name) for name in TABLES)


BOUNDARIES = ["campaign.before_seal", "campaign.after_seal", "run.after_start", "validate.after_verdict",
              "publish.after_intent", "publish.before_commit", "publish.after_commit", "publish.after_record",
              "campaign.after_member"]  # fmt: skip


EACH = [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 4))]
"""Each of the four members; one of them in every run of the tests."""


def killed_at(place: str, n: int) -> AbstractContextManager[None]:
    """Kills this process the n-th time that it comes by."""
    left = [n]

    def kill() -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return arm(place, kill)


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("place", BOUNDARIES)
def test_a_campaign_killed_at_any_boundary_of_any_member_goes_on(make_graph: Make, place: str, n: int) -> None:
    """The same command, repeated, ends with the same content and one publication a member."""
    world = make_graph(products=ITSELF)
    campaign = plan(world)
    approve(world, campaign)
    with pytest.raises(Killed), killed_at(place, n):
        world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    world.client.close()
    world.open()
    view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    assert view.state == "done"
    assert all(world.is_right(name) for name in TABLES)
    ledger = world.workspace.ledger
    landed = [p for one in view.members for p in ledger.publications.list(one.run_id) if p.result_snapshot_id]
    assert len(landed) == 4
    assert len(ledger.members.list(campaign.campaign_id)) == 4
    assert ledger.audit.verify().ok


FIRST = ["campaign.before_seal", "campaign.after_seal", "run.after_start", "stage.after_adopt", "run.before_staged",
         "validate.after_measure", "validate.after_verdict", "publish.after_release",
         "campaign.after_member"]  # fmt: skip


@pytest.mark.parametrize("place", FIRST)
def test_a_second_process_that_is_faster_is_no_problem_for_the_first(make_graph: Make, place: str) -> None:
    """Wherever the first one is overtaken: it ends without an error, and each member is published once."""
    world = make_graph(products=ITSELF)
    campaign = plan(world)
    approve(world, campaign)
    other = GraphWorld(world.root, world.lake, world.events, world.transforms)
    other.open()
    left = [1]

    def overtake() -> None:
        if left and left.pop():
            other.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")

    with arm(place, overtake):
        view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    other.client.close()
    assert (view.state, view.problems, view.exit_code) == ("done", {}, 0)
    assert all(world.is_right(name) for name in TABLES)
    ledger = world.workspace.ledger
    landed = [p for one in view.members for p in ledger.publications.list(one.run_id) if p.result_snapshot_id]
    assert len(landed) == 4


def test_a_second_process_waits_while_the_first_one_publishes(make_graph: Make) -> None:
    """And goes on with the members that read what became visible."""
    world = make_graph(products=ITSELF)
    campaign = plan(world)
    approve(world, campaign)
    began, seen, views = threading.Event(), threading.Event(), []
    other = GraphWorld(world.root, world.lake, world.events, world.transforms)
    other.open(sleep=lambda _seconds: (seen.set(), time.sleep(0.05)))

    def hold() -> None:
        began.set()
        assert seen.wait(30), "the second process did not wait"

    def walk_too() -> None:
        views.append(other.client.run_campaign(campaign.campaign_id, publish=True, as_="cy"))

    def walk() -> None:
        assert began.wait(30)
        walk_too()

    second = threading.Thread(target=walk)
    second.start()
    with arm("publish.after_intent", hold):
        views.append(world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy"))
    second.join(60)
    other.client.close()
    assert [(view.problems, view.exit_code) for view in views] == [({}, 0), ({}, 0)]
    assert world.client.campaign(campaign.campaign_id).state == "done"
    assert all(world.is_right(name) for name in TABLES)


def test_a_rejected_member_stops_those_that_read_it_and_no_other(make_graph: Make) -> None:
    """Siblings go on; what reads the rejected one does not start."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    world.transforms["ops.monthly"] = lambda _ctx, days: [{"month": "2026-02", "amount": 1}]
    view = walk(world, campaign)
    assert states(view) == {
        "ops.hourly": "published", "ops.daily": "published", "ops.monthly": "rejected", "ops.rolling": "published",
    }  # fmt: skip
    assert view.exit_code == ValidationRejected.exit_code


def test_descendants_of_a_rejected_member_are_stopped(make_graph: Make) -> None:
    """The member in the middle is judged wrong; nothing after it starts, and the one before it stays."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    world.transforms["ops.daily"] = lambda _ctx, hours: [{"day": datetime(2026, 2, 1, tzinfo=UTC).date(), "amount": 1}]
    view = walk(world, campaign)
    assert states(view) == {
        "ops.hourly": "published", "ops.daily": "rejected", "ops.monthly": "stopped", "ops.rolling": "stopped",
    }  # fmt: skip
    assert view.exit_code == ValidationRejected.exit_code
    assert "ops.daily is rejected" in view.members[2].told
    assert world.is_right("ops.hourly")
    assert not world.is_right("ops.daily")


# -------------------------------------------------------------------------------------------------------------- drift


def drifted(world: GraphWorld, campaign: CampaignPlanView, product: str) -> str:
    """Why a member needs a new approval, after everything before it was published."""
    view = walk(world, campaign)
    assert states(view)[product] == "drifted", states(view)
    again = world.client.run_campaign(campaign.campaign_id, as_="ana")
    assert again.exit_code == Drifted.exit_code
    assert product in (again.problems or {})
    return next(one.told for one in view.members if one.product == product)


def test_a_live_write_into_the_scope_after_the_approval_needs_a_new_one(make_graph: Make) -> None:
    """The member does not start; a new campaign from it on, in the place of the old one, corrects the rest."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    live_write(world, "ops.monthly", month="2026-02", amount=7)
    told = drifted(world, campaign, "ops.monthly")
    assert told == "the scope, lake.ops.monthly 2026-02: was written since the campaign was planned"
    view = world.client.campaign(campaign.campaign_id)
    assert states(view)["ops.rolling"] == "published", "a sibling goes on"
    assert any("errata plan ops.monthly" in one and "--cascade --supersede" in one for one in view.next)
    later = plan(world, "ops.monthly", "2026-02", supersede=campaign.campaign_id)
    approve(world, later)
    assert set(states(walk(world, later)).values()) == {"published"}
    assert all(world.is_right(name) for name in TABLES)


def test_compaction_of_the_scope_or_of_an_input_is_no_drift(make_graph: Make) -> None:
    """The same rows in other files are what was approved."""
    world = make_graph()
    for hour in range(2):
        world.lake.table("lake.ops.daily").append([{"day": "2026-01-31", "amount": 0 + hour * 0}])
    campaign = plan(world)
    approve(world, campaign)
    for name in (*TABLES, "raw.events"):
        world.lake.table(f"lake.{name}").compact()
    assert set(states(walk(world, campaign)).values()) == {"published"}


def test_a_partition_that_a_member_reads_and_no_member_wrote_must_be_as_sealed(make_graph: Make) -> None:
    """With look-back a child reads more of its parent than the campaign wrote; that part is sealed, too."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    live_write(world, "ops.daily", day="2026-01-31", amount=5)
    told = drifted(world, campaign, "ops.rolling")
    assert told == "input days, lake.ops.daily 2026-01-31: changed since the campaign was planned"


def test_a_partition_that_was_written_after_its_member_published_it_is_drift(make_graph: Make) -> None:
    """A child reads exactly what the run of its parent published, never what somebody else put in its place."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    for _ in range(2):
        for one in world.client.run_campaign(campaign.campaign_id, as_="ana").members:
            if one.state == "validated":
                world.client.publish(one.run_id, as_="bo")
    live_write(world, "ops.daily", day="2026-02-01", amount=5)
    told = drifted(world, campaign, "ops.monthly")
    assert told == "input days, lake.ops.daily 2026-02-01: was written after ops.daily was published"


def test_an_input_that_can_no_longer_be_read_as_approved_is_drift(make_graph: Make) -> None:
    """It is on record, so that the status shows the way on instead of the same command again."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    world.lake.table("lake.raw.events").change_columns(lambda found: [one for one in found if one.name != "at"])
    view = world.client.run_campaign(campaign.campaign_id, as_="ana")
    assert (states(view)["ops.hourly"], view.exit_code) == ("drifted", Drifted.exit_code)
    assert "has no column at" in view.members[0].told
    assert f"--supersede {campaign.campaign_id}" in view.next[0]


def test_an_input_outside_the_campaign_must_be_as_sealed_unless_its_product_says_otherwise(make_graph: Make) -> None:
    """`drift: live` is sealed and shown to the approver."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    world.change("2026-02-01T23:00", 2000)
    assert "input events, lake.raw.events 2026-02-01T23" in drifted(world, campaign, "ops.hourly")
    live = PRODUCTS["hourly"].replace("partition: at}", "partition: at, drift: live}")
    world = make_graph(products={"hourly": live})
    campaign = plan(world)
    assert campaign.members[0].live_inputs == ("events",)
    assert "ops.hourly: input events is read" in campaign.notes[0]
    approve(world, campaign)
    world.change("2026-02-01T23:00", 2000)
    assert set(states(walk(world, campaign)).values()) == {"published"}
    assert all(world.is_right(name) for name in TABLES)


# --------------------------------------------------------------------------------------------------- the ledger itself


def sealed_member(world: GraphWorld, campaign: CampaignPlanView) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The campaign, what the first member was derived from, and its run."""
    ledger = world.workspace.ledger
    member = ledger.members.list(campaign.campaign_id)["ops.hourly"]
    content = json.loads(ledger.campaigns.content(campaign.campaign_id))
    return content, json.loads(ledger.parts.get(member.derived)), member.run_id


def test_the_ledger_approves_only_what_it_derives_itself(make_graph: Make) -> None:
    """Whoever seals a member says what was found; the manifest follows from the campaign, whatever they claim."""
    source = make_graph()
    first = plan(source)
    approve(source, first)
    source.client.run_campaign(first.campaign_id, as_="ana")
    campaign, found, _ = sealed_member(source, first)
    world = make_graph()
    second = plan(world)
    approve(world, second)
    ledger, sealed = world.workspace.ledger, json.loads(world.workspace.ledger.campaigns.content(second.campaign_id))
    forged = derive_manifest(sealed, second.campaign_digest, "ops.hourly", found) | {"reconcile": []}
    with pytest.raises(ApprovalRefused, match="does not follow from the campaign"):
        ledger.members.seal(
            second.campaign_id, "ops.hourly", "bf-20260201-hourly-00000000", found,
            digest=sha256(canonical_bytes(forged)), judge=lambda *_: pytest.fail("too late"), parts={},
            actor=Actor("ana", "ana", "here"),
        )  # fmt: skip
    drifted_found = json.loads(json.dumps(found))
    drifted_found["target"]["fingerprints"] = {HOUR: "another"}
    digest = sha256(canonical_bytes(derive_manifest(sealed, second.campaign_digest, "ops.hourly", drifted_found)))
    with pytest.raises(ApprovalRefused, match="was written since the campaign was planned"):
        ledger.members.seal(
            second.campaign_id, "ops.hourly", "bf-20260201-hourly-00000000", drifted_found, digest=digest,
            judge=lambda *_: pytest.fail("too late"), parts={}, actor=Actor("ana", "ana", "here"),
        )  # fmt: skip
    assert campaign["product"] == "ops.hourly"
    assert not ledger.members.list(second.campaign_id)


def test_publish_derives_the_manifest_of_a_member_again(make_graph: Make) -> None:
    """What a member was derived from cannot be exchanged between its approval and its publication."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    (root, *_) = world.client.run_campaign(campaign.campaign_id, as_="ana").members
    _, found, _ = sealed_member(world, campaign)
    other = canonical_bytes(found | {"as_of": "2020-01-01T00:00:00.000Z"})
    ledger = world.workspace.ledger
    ledger.parts.put(other)
    import sqlite3

    with sqlite3.connect(world.root / ".errata/ledger.db") as raw:
        raw.execute("DROP TRIGGER member_approval_no_update")
        raw.execute("UPDATE member_approval SET derived = ?", (sha256(other),))
    with pytest.raises(ApprovalRefused, match="does not follow from its campaign"):
        world.client.publish(root.run_id, as_="bo")
    assert not ledger.audit.verify().ok


def test_a_child_is_not_published_after_its_parent_was_rolled_back(make_graph: Make) -> None:
    """The intent of a member checks that what it read is still accepted; its release is void."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    client = world.client
    (root, *_) = client.run_campaign(campaign.campaign_id, as_="ana").members
    client.publish(root.run_id, as_="bo")
    daily = next(o for o in client.run_campaign(campaign.campaign_id, as_="ana").members if o.product == "ops.daily")
    client.release(daily.run_id, digest=client.show(daily.run_id).release_digest, as_="bo")
    assert client.status(daily.run_id).release.valid
    client.rollback(root.run_id, reason="wrong", as_="bo")
    assert "was rolled back after it" in client.status(daily.run_id).release.void
    with pytest.raises(InputWithdrawn, match=f"it was computed from {HOUR} of lake.ops.hourly"):
        client.publish(daily.run_id, as_="bo")
    assert states(client.run_campaign(campaign.campaign_id, as_="ana"))["ops.monthly"] == "stopped"


def test_a_parent_is_not_rolled_back_while_its_child_is_being_published(make_graph: Make) -> None:
    """The child would otherwise land on what was just taken back."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    client = world.client
    (root, *_) = client.run_campaign(campaign.campaign_id, as_="ana").members
    client.publish(root.run_id, as_="bo")
    daily = next(o for o in client.run_campaign(campaign.campaign_id, as_="ana").members if o.product == "ops.daily")

    def roll_back() -> None:
        with pytest.raises(ScopeLocked, match=r"of ops.daily, which was computed from it, is in progress"):
            client.rollback(root.run_id, reason="wrong", as_="bo")

    with arm("publish.after_intent", roll_back):
        client.publish(daily.run_id, as_="bo")
    assert world.is_right("ops.hourly")
    assert world.is_right("ops.daily")


def test_outside_a_campaign_a_withdrawn_input_is_a_warning(make_graph: Make) -> None:
    """Two runs that were planned apart are decided apart."""
    world = make_graph()
    hourly = world.correct("ops.hourly", HOUR)
    daily = world.client.plan("ops.daily", partitions="2026-02-01", reason="late", as_="ana")
    world.client.approve(daily.id, digest=daily.digest, as_="bo")
    world.client.run(daily.id, as_="ana")
    world.client.validate(daily.id, as_="ana")
    world.client.rollback(hourly.id, reason="wrong", as_="bo")
    view = world.client.publish(daily.id, as_="bo")
    assert any("input withdrawn" in one for one in view.warnings), view.warnings


# ----------------------------------------------------------------------------------------------------------- rollback


def test_nothing_is_undone_while_a_member_cannot_go_back(make_graph: Make) -> None:
    """A live write on one leaf is named first; `--leave` goes on above it and puts the rest on record as stale."""
    world = make_graph()
    before = content(world)
    campaign = plan(world)
    approve(world, campaign)
    walk(world, campaign)
    live_write(world, "ops.monthly", month="2026-02", amount=7)
    after = content(world)
    look = world.client.roll_back_campaign(campaign.campaign_id, as_="bo")
    assert {one.product: one.state for one in look.members}["ops.monthly"] == "cannot"
    assert any('--leave ops.monthly="…"' in one for one in look.next)
    with pytest.raises(StateRefused, match=r"ops.monthly") as refused:
        world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    assert refused.value.state == "nothing at all was rolled back"
    assert content(world) == after
    back = world.client.roll_back_campaign(
        campaign.campaign_id, leave={"ops.monthly": "a live job owns it"}, reason="wrong", as_="bo"
    )
    assert {one.product: one.state for one in back.members} == {
        "ops.hourly": "rolled_back", "ops.daily": "rolled_back", "ops.rolling": "rolled_back", "ops.monthly": "left",
    }  # fmt: skip
    now = content(world)
    assert {name: now[name] == before[name] for name in TABLES} == {
        "ops.hourly": True, "ops.daily": True, "ops.rolling": True, "ops.monthly": False,
    }  # fmt: skip
    left = next(one.run_id for one in look.members if one.product == "ops.monthly")
    facts = [value for name, value in world.workspace.ledger.facts.list(left).items() if name.startswith("stale.")]
    assert [(one["why"], one["partitions"], one["left"]["why"]) for one in facts] == [
        ("parent rolled back", ["2026-02"], "a live job owns it")
    ]
    assert back.stale
    assert world.workspace.ledger.audit.verify().ok


@pytest.mark.parametrize("leave", [{}, {"ops.monthly": "closed books"}])
def test_nothing_is_undone_while_a_member_is_being_published(make_graph: Make, leave: dict[str, str]) -> None:
    """Its parent could not go back before the outcome is known, and half a rollback is none."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    for _ in range(3):
        view = world.client.run_campaign(campaign.campaign_id, as_="ana")
        ready = {one.product: one.run_id for one in view.members if one.state == "validated"}
        for name in ready.keys() - {"ops.monthly"}:
            world.client.publish(ready[name], as_="bo")
    before, other = content(world), GraphWorld(world.root, world.lake, world.events, world.transforms)
    other.open()
    seen: list[Exception] = []

    def undo() -> None:
        with pytest.raises(StateRefused, match="another process works on it now") as refused:
            other.client.roll_back_campaign(campaign.campaign_id, reason="wrong", leave=leave, as_="bo")
        seen.append(refused.value)
        assert content(world) == before

    with arm("publish.after_intent", undo):
        world.client.publish(ready["ops.monthly"], as_="bo")
    other.client.close()
    assert len(seen) == 1
    assert world.client.campaign(campaign.campaign_id).state == "done"


def test_one_member_goes_back_with_what_follows_from_it(make_graph: Make) -> None:
    """Members before it stay published."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    walk(world, campaign)
    back = world.client.roll_back_campaign(campaign.campaign_id, member="ops.daily", reason="wrong", as_="bo")
    assert [one.product for one in back.members] == ["ops.rolling", "ops.monthly", "ops.daily"]
    assert world.is_right("ops.hourly")
    assert not world.is_right("ops.daily")
    with pytest.raises(UsageError, match="expected a member of"):
        world.client.roll_back_campaign(campaign.campaign_id, member="ops.none", as_="bo")


def test_readers_outside_the_campaign_are_recorded_as_stale(make_graph: Make) -> None:
    """A run that was planned on what the campaign published follows from nothing that is there any more."""
    world = make_graph()
    campaign = plan(world, without=["ops.rolling"])
    approve(world, campaign)
    walk(world, campaign)
    other = world.correct("ops.rolling", "2026-02-01..2026-02-02")
    back = world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    assert any("ops.rolling 2026-02-01 … 2026-02-02" in one for one in back.stale)
    facts = world.workspace.ledger.facts.list(other.id)
    assert any(name.startswith("stale.") for name in facts)


@pytest.mark.parametrize("n", EACH)
def test_a_rollback_that_is_killed_between_members_goes_on(make_graph: Make, n: int) -> None:
    """Repeated, it undoes the rest; the content is that of before the campaign."""
    world = make_graph()
    before = content(world)
    campaign = plan(world)
    approve(world, campaign)
    walk(world, campaign)
    with pytest.raises(Killed), killed_at("campaign.before_undo", n):
        world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    world.client.close()
    world.open()
    world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    assert content(world) == before


def test_a_declined_or_cancelled_campaign_starts_nothing(make_graph: Make) -> None:
    """Runs of it that are not published end with it."""
    world = make_graph()
    campaign = plan(world)
    approve(world, campaign)
    (root, *_) = world.client.run_campaign(campaign.campaign_id, as_="ana").members
    view = world.client.decline_campaign(campaign.campaign_id, note="books are closed", as_="bo")
    assert view.state == "declined"
    assert world.client.status(root.run_id).state == "cancelled"
    assert states(world.client.run_campaign(campaign.campaign_id, as_="ana"))["ops.daily"] == "declined"
    again = plan(world)
    assert again.campaign_id != campaign.campaign_id
    assert again.supersedes == campaign.campaign_id


def test_the_state_of_a_campaign_is_read_in_one_view(make_graph: Make) -> None:
    """A part of an id is enough, unless a run has it too."""
    world = make_graph()
    campaign = plan(world)
    found = read_campaign(world.workspace, campaign.campaign_id[-8:])
    assert found.record.campaign_id == campaign.campaign_id
    assert replace(found.record, state="declined").until == found.record.until
