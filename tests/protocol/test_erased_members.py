"""A subject who is erased in the middle of a campaign is in nothing that its members publish from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from errata.errors import ErasureListMoved
from errata.failpoints import arm
from errata.testing import Lake
from errata.views.campaign import CampaignPlanView
from support.empty_ledger import empty_ledger
from support.graph_world import PROJECT, GraphWorld

Make = Callable[..., GraphWorld]
DAYS = ("2026-01-31", "2026-02-01")
USERS = ("ann", "ben", "cat")
SUBJECT = "ben"
MEMBERS = ("ops.visits", "ops.daily", "ops.monthly")
PERSON = "cy: {roles: [operator, publisher]}"
LIST = 'erasure: {table: lake.privacy.erased, key: "${NOT_NEEDED}"}\n'


def product(name: str, source: str, column: str, grain: str, reads: str = "day", *, publish: str = "") -> str:
    """A product of counts by user and partition, which names its subjects."""
    return f"""
product: ops.{name}
owner: ops
target: {{table: lake.ops.{name}, partition: {{column: {column}, grain: {grain}}}, subjects: [user]}}
transform: {{call: "transforms.graph:{name}", version: 1.0.0}}
inputs:
  rows: {{table: lake.{source}, partition: {reads}, grain: day, subjects: [user]}}
publish: {{manual: false{publish}}}
"""


def sum_by_user(rows: Any, column: str, length: int) -> list[dict[str, Any]]:
    """The sum of the counts of each user, by the first characters of the day."""
    totals: dict[tuple[str, str], int] = {}
    for row in rows:
        at = str(row["day"])[:length], row["user"]
        totals[at] = totals.get(at, 0) + row["n"]
    return [
        {column: date.fromisoformat(at) if length == 10 else at, "user": user, "n": n}
        for (at, user), n in sorted(totals.items())
    ]


def by_day(_ctx: Any, rows: Any) -> list[dict[str, Any]]:
    return sum_by_user(rows.to_pylist(), "day", 10)


def by_month(_ctx: Any, rows: Any) -> list[dict[str, Any]]:
    return sum_by_user(rows.to_pylist(), "month", 7)


@pytest.fixture
def make_graph(tmp_path: Path) -> Iterator[Make]:
    """Makes three tables that build on each other, each with rows of three users, all wrong."""
    made: list[GraphWorld] = []

    def make(**options: Any) -> GraphWorld:
        made.append(build_graph(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


@pytest.fixture
def world(make_graph: Make) -> GraphWorld:
    """These tables, published by themselves and each at once."""
    return make_graph()


def build_graph(root: Path, *, publish: str = "") -> GraphWorld:
    """A project with these products, which publish by themselves."""
    files = {
        "errata.yaml": PROJECT.replace("limits:", f"  {PERSON}\nlimits:") + LIST,
        "transforms/graph.py": "def visits(ctx, rows): ...\ndef daily(ctx, rows): ...\ndef monthly(ctx, rows): ...\n",
        "products/visits.yaml": product("visits", "raw.events", "day", "day", publish=publish),
        "products/daily.yaml": product("daily", "ops.visits", "day", "day", publish=publish),
        "products/monthly.yaml": product("monthly", "ops.daily", "month", "month", publish=publish),
    }
    for place, text in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, "utf-8")
    (root / ".errata").mkdir()
    (root / ".errata/ledger.db").write_bytes(empty_ledger())
    lake, columns = Lake(), {"day": "date", "user": "string", "n": "long"}
    for name in ("raw.events", "ops.visits", "ops.daily"):
        lake.create(f"lake.{name}", columns, partition=("day", "identity"))
    monthly = {"month": "string", "user": "string", "n": "long"}
    lake.create("lake.ops.monthly", monthly, partition=("month", "identity"))
    events = [{"day": date.fromisoformat(day), "user": user, "n": 5} for day in DAYS for user in USERS]
    lake.table("lake.raw.events").append(events)
    for name in ("ops.visits", "ops.daily"):
        lake.table(f"lake.{name}").append([{**row, "n": 1} for row in events])
    lake.table("lake.ops.monthly").append([{"month": day[:7], "user": user, "n": 1} for day in DAYS for user in USERS])
    transforms = {"ops.visits": by_day, "ops.daily": by_day, "ops.monthly": by_month}
    made = GraphWorld(root, lake, {}, transforms)
    made.open()
    return made


def start(world: GraphWorld) -> CampaignPlanView:
    """An approved campaign of all three tables."""
    campaign = world.client.plan_campaign(
        "ops.visits", partitions=f"{DAYS[0]}..{DAYS[1]}", reason="counts were wrong", as_="ana"
    )
    assert [one.product for one in campaign.members] == list(MEMBERS)
    world.client.approve_campaign(campaign.campaign_id, digest=campaign.campaign_digest, as_="bo")
    return campaign


def content(world: GraphWorld, name: str) -> list[tuple[str, str, int]]:
    """Partition, user and count of each row."""
    column = "month" if name == "ops.monthly" else "day"
    return sorted((str(row[column]), row["user"], row["n"]) for row in world.lake.table(f"lake.{name}").rows())


def expect(name: str, users: Sequence[str]) -> list[tuple[str, str, int]]:
    """The right rows of these users; both days have the same."""
    return sorted((day[:7] if name == "ops.monthly" else day, user, 5) for day in DAYS for user in users)


class Request:
    """A request of the subject that arrives at the n-th time that a campaign passes a point."""

    def __init__(self, world: GraphWorld, n: int, *subjects: str) -> None:
        self.world, self.left, self.subjects = world, n, subjects or (SUBJECT,)
        self.out: tuple[str, ...] = ()  # what readers saw by then

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.out = tuple(name for name in MEMBERS if content(self.world, name) == expect(name, USERS))
            self.world.client.erase(self.subjects, reason="request 1", as_="bo")


POINTS = ["campaign.after_seal", "run.before_staged", "validate.after_measure", "validate.after_verdict",
          "publish.after_intent", "campaign.after_member"]  # fmt: skip


EACH = [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))]
"""Each of the three members; one of them in every run of the tests."""


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("point", POINTS)
def test_whoever_is_erased_in_the_middle_is_in_no_table_published_after(world: GraphWorld, point: str, n: int) -> None:
    """At any point of any member, in one command: members that are not out yet have no row of the subject."""
    campaign = start(world)
    request = Request(world, n)
    with arm(point, request):
        view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    assert request.left <= 0
    assert (view.state, view.exit_code) == ("done", 0), view
    assert request.out == MEMBERS[: n if point == "campaign.after_member" else n - 1]
    for name in MEMBERS:
        assert content(world, name) == expect(name, USERS if name in request.out else ("ann", "cat")), name
    assert world.workspace.ledger.audit.verify().ok


def test_a_member_whose_list_grows_after_each_of_three_verdicts_stops_and_goes_on_later(world: GraphWorld) -> None:
    """Readers see nothing of it; the next command judges it again and goes on."""
    campaign, left = start(world), iter(range(9))

    def grow() -> None:
        world.client.erase([f"nobody {next(left)}"], reason="a request", as_="bo")

    before = content(world, "ops.visits")
    with arm("publish.after_intent", grow):
        view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    assert next(left) == 3
    assert view.exit_code == ErasureListMoved.exit_code
    assert {one.product: one.state for one in view.members}["ops.visits"] == "validated"
    assert content(world, "ops.visits") == before
    assert world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy").state == "done"
    for name in MEMBERS:
        assert content(world, name) == expect(name, USERS)


def test_whoever_is_erased_between_two_waves_of_a_member_is_in_no_later_one(make_graph: Make) -> None:
    """The wave that is out keeps what it had, and its owner deletes it; later waves and members have no row."""
    world = make_graph(publish=", waves: {size: 1, release: none}")
    campaign, request = start(world), Request(world, 1)
    with arm("waves.between", request):
        view = world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")
    assert (view.state, view.exit_code) == ("done", 0), view
    first = [row for row in content(world, "ops.visits") if row[1] == SUBJECT]
    assert first == [(DAYS[1], SUBJECT, 5)]  # the newest day goes out first
    for name in MEMBERS[1:]:
        assert content(world, name) == expect(name, ("ann", "cat"))
