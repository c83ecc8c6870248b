"""The ready table and campaigns: a reader of several tables sees all of a correction or nothing of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from errata.delivery.payment import pay
from errata.errors import EngineError, ErrataError, PublishHeld
from errata.evidence.keys import generate_key_pair
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.hold import READERS, READERS_TERMS, HoldRequest
from errata.model.consumer.readiness import ReadyRow
from errata.views.campaign import CampaignPlanView
from support.clock import later, stopped_clock
from support.graph_world import PRODUCTS, GraphWorld
from support.postgres import PostgresServer

READY = "lake.errata.ready"
SCOPE = {
    "ops.hourly": ["2026-02-01T23"], "ops.daily": ["2026-02-01"], "ops.monthly": ["2026-02"],
    "ops.rolling": ["2026-02-01", "2026-02-02"],
}  # fmt: skip
PEOPLE = "people:\n  cy: {roles: [operator, publisher]}\n"
PLACES = (
    "ready.before_commit", "ready.after_commit", "publish.after_intent", "publish.before_commit",
    "publish.after_commit", "publish.after_record", "campaign.before_seal", "campaign.after_member",
    "campaign.after_undo_begun", "campaign.before_undo", "rollback.after_intent", "rollback.before_commit",
    "rollback.after_commit", "rollback.after_record",
)  # fmt: skip
ANA = Actor("ana", "ana", "here")


class Killed(BaseException):
    """The process is gone; nothing catches it."""


@dataclass
class Office:
    """A campaign of four tables, and somebody who reads all of them whenever something happens."""

    world: GraphWorld
    campaign: CampaignPlanView
    before: dict[str, Any] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)  # what each look found

    def read(self) -> None:
        """Ask for all tables at once, as SQL does, and read each as the answer says."""
        rows = self.world.lake.ready.rows(READY)
        found = {name: [find_row(rows, name, day) for day in days] for name, days in SCOPE.items()}
        told = {one.state if one else "ready" for ones in found.values() for one in ones}
        can_read = told <= {"ready", "announced"}
        versions = set()
        for name, ones in found.items():
            named = {one.snapshot_id if one else None for one in ones}
            assert len(named) == 1, "partitions of one member are read at one snapshot"
            versions.add(self._judge(name, named.pop()))
        assert len(versions) == 1, f"{told}: some tables are old and some are new"
        self.seen.append(f"{'ready' if can_read else 'wait'} {versions.pop()}")

    def _judge(self, name: str, snapshot: str | None) -> str:
        content = sorted((dict(row) for row in self.world.lake.table(f"lake.{name}").rows(snapshot)), key=str)
        expected = sorted(self.world.expect()[name], key=str)
        assert content in (self.before[name], expected), f"{name} is neither old nor new"
        return "old" if content == self.before[name] else "new"

    def list_seen(self) -> list[str]:
        """What was found, without repetitions."""
        return [one for n, one in enumerate(self.seen) if n == 0 or one != self.seen[n - 1]]

    @contextmanager
    def reading(self, **acts: Callable[[], None]) -> Iterator[None]:
        """Read at every step; ``acts`` happen at a step after that."""
        with ExitStack() as stack:
            for place in PLACES:
                stack.enter_context(arm(place, partial(self._step, acts.get(place.replace(".", "_")))))
            yield

    def _step(self, act: Callable[[], None] | None) -> None:
        self.read()
        if act is not None:
            act()

    def run(self) -> str:
        return self.world.client.run_campaign(self.campaign.campaign_id, publish=True, as_="cy").state

    def roll_back(self, **options: Any) -> None:
        self.world.client.roll_back_campaign(self.campaign.campaign_id, reason="wrong", as_="bo", **options)

    def reopen(self) -> None:
        self.world.client.close()
        self.world.open()

    def states(self) -> dict[str, str]:
        return {name: one.partitions[0].state for name in SCOPE if (one := self.world.client.ready(name)).partitions}


def kill_at(n: int) -> Callable[[], None]:
    """Kills this process the n-th time."""
    left = [n]

    def kill() -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return kill


def find_row(rows: tuple[ReadyRow, ...], name: str, partition: str) -> ReadyRow | None:
    """The row about a partition; None: it was never held."""
    mine = [one for one in rows if one.table_name == f"lake.{name}"]
    return next((one for one in mine if one.first_partition <= partition <= one.last_partition), None)


def list_kills(places: Sequence[str], usual: set[tuple[str, int]]) -> list[Any]:
    """Every place at the first, second and last member; those that are not usual take part in the slow tests."""
    found = [(place, n) for place in places for n in (1, 2, 4)]
    return [one if one in usual else pytest.param(*one, marks=pytest.mark.slow) for one in found]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Office]]:
    made: list[GraphWorld] = []

    def of(manual: str = "", ledger: str = "") -> Office:
        root = tmp_path / f"graph{len(made)}"
        root.mkdir()
        products = {name: text + f"publish: {{manual: {str(name == manual).lower()}}}\n"
                    for name, text in PRODUCTS.items()}  # fmt: skip
        world = GraphWorld.make(root, products=products)
        made.append(world)
        text = (root / "errata.yaml").read_text().replace("people:\n", f"ready: {{table: {READY}}}\n{PEOPLE}", 1)
        text = text.replace("sqlite:///.errata/ledger.db", ledger) if ledger else text
        world.write("errata.yaml", text)
        before = {name: world.rows(name) for name in SCOPE}
        world.change("2026-02-01T23:00", 1000)
        campaign = world.client.plan_campaign(
            "ops.hourly", partitions="2026-02-01T23", reason="late events", as_="ana"
        )  # fmt: skip
        world.client.approve_campaign(campaign.campaign_id, digest=campaign.campaign_digest, as_="bo")
        return Office(world, campaign, before)

    yield of
    for world in made:
        world.client.close()


def test_the_tables_of_a_campaign_are_not_ready_together_and_ready_together(make: Callable[..., Office]) -> None:
    """One commit before the first intent, one after the last member; the old snapshots fit all the time between."""
    office = make()
    with office.reading():
        assert office.run() == "done"
    office.read()
    assert office.list_seen() == ["ready old", "wait old", "ready new"]
    commits = office.world.lake.ready.commits
    first = next(rows for rows in commits if any(one.state == "held" for one in rows))
    assert {one.table_name for one in first if one.state == "held"} == {f"lake.{name}" for name in SCOPE}
    (root,) = (office.world.workspace.ledger.members.list(office.campaign.campaign_id)["ops.hourly"].run_id,)
    assert {one.run_id for one in first if one.state == "held"} == {root}
    last = {one.state for one in commits[-1]}
    assert (last, {one.state for one in commits[-2]} & {"ready", "announced"}) == ({"ready"}, set())


def test_the_whole_campaign_goes_back_for_readers_at_once(make: Callable[..., Office]) -> None:
    """Not ready before the first member goes back, ready again when the last one is; corrected snapshots until then."""
    office = make()
    office.run()
    office.seen.clear()
    with office.reading():
        office.roll_back()
    office.read()
    assert office.list_seen() == ["ready new", "wait new", "ready old"]
    assert office.world.workspace.ledger.audit.verify().ok


@pytest.mark.parametrize(
    "place, n",
    list_kills(
        PLACES[:8],
        {
            ("ready.before_commit", 1),
            ("ready.after_commit", 1),
            ("publish.after_commit", 1),
            ("publish.after_record", 4),
        },
    ),
)
def test_a_campaign_that_is_killed_never_shows_half_of_it(make: Callable[..., Office], place: str, n: int) -> None:
    """Killed at a member and repeated, also after every lease and hold has expired."""
    office = make()
    with office.reading(**{place.replace(".", "_"): kill_at(n)}):
        with suppress(Killed):
            office.run()
        office.read()
        with later(hours=1):
            pay(office.world.workspace, ANA, seconds=5)
            office.read()
            office.reopen()
            assert office.run() == "done", office.world.said
            office.read()
    assert office.seen[-1] == "ready new"
    assert set(office.list_seen()) <= {"ready old", "wait old", "ready new"}
    assert office.world.workspace.ledger.audit.verify().ok


@pytest.mark.parametrize(
    "place, n", list_kills(PLACES[8:], {("rollback.after_commit", 2), ("rollback.after_record", 4)})
)
def test_a_rollback_that_is_killed_never_shows_half_of_it(make: Callable[..., Office], place: str, n: int) -> None:
    """Readers wait until it is repeated."""
    office = make()
    office.run()
    office.seen.clear()
    with office.reading(**{place.replace(".", "_"): kill_at(n)}):
        with suppress(Killed):
            office.roll_back()
        with later(hours=1):
            pay(office.world.workspace, ANA, seconds=5)
            office.read()
            office.reopen()
            office.roll_back()
            office.read()
    assert office.seen[-1] == "ready old"
    assert set(office.list_seen()) <= {"ready new", "wait new", "ready old"}


def test_a_campaign_that_waits_for_a_person_keeps_its_readers_waiting(make: Callable[..., Office]) -> None:
    """Holds expire, the campaign does not: the first member is out and the others are not."""
    office = make(manual="daily")
    assert office.run() == "open"
    with later(hours=5):
        pay(office.world.workspace, ANA, seconds=5)
        office.read()
        assert office.seen[-1] == "wait old"
        assert office.states() == {
            "ops.hourly": "settling", "ops.daily": "held", "ops.monthly": "held", "ops.rolling": "held",
        }  # fmt: skip
        found = office.world.client.ready("ops.monthly").partitions[0]
        assert (found.run_id, found.snapshot_id is None) == (office.campaign.campaign_id, False)
    assert not office.world.workspace.ledger.outbox.list_open(), "nothing is owed that only a person can bring about"


@pytest.mark.parametrize("end", ["cancel", "decline", "cancel the member", "roll the member back"])
def test_a_campaign_that_is_given_up_lets_its_readers_go(make: Callable[..., Office], end: str) -> None:
    """What is out stays out, and nothing else comes: that is for people to know, and readers continue."""
    office = make(manual="daily")
    office.run()
    client, members = office.world.client, office.world.workspace.ledger.members.list(office.campaign.campaign_id)
    if end == "cancel":
        client.cancel_campaign(office.campaign.campaign_id, reason="enough", as_="ana")
    elif end == "decline":
        client.decline_campaign(office.campaign.campaign_id, note="no", as_="bo")
    elif end == "cancel the member":
        client.cancel(members["ops.daily"].run_id, reason="enough", as_="ana")
    else:
        client.rollback(members["ops.hourly"].run_id, reason="wrong", as_="bo")
    pay(office.world.workspace, ANA, seconds=5)
    rows = office.world.lake.ready.rows(READY)
    assert {one.state for one in rows} <= {"ready", "announced"}
    assert set(office.states().values()) <= {"ready", "announced"}


def test_a_first_publication_that_fails_lets_the_readers_of_all_tables_go(make: Callable[..., Office]) -> None:
    """Nothing is out, so that all tables are as they were."""
    office = make()

    def fail() -> None:
        raise EngineError("it failed here")

    with office.reading(publish_before_commit=fail):
        office.run()
    office.read()
    assert office.seen[-1] == "ready old"
    assert not office.world.workspace.ledger.holds.list_active()
    with office.reading():
        assert office.run() == "done"
    assert office.list_seen() == ["ready old", "wait old", "ready old", "wait old", "ready new"]


def test_the_first_intent_is_refused_unless_the_readers_of_all_tables_are_held(make: Callable[..., Office]) -> None:
    """Checked by the ledger in the transaction of the intent; a caller cannot leave a table out."""
    office = make(manual="hourly")
    office.run()
    ledger = office.world.workspace.ledger
    run_id = ledger.members.list(office.campaign.campaign_id)["ops.hourly"].run_id
    release = _release(office, run_id)
    (alone,) = ledger.holds.open(
        run_id, [HoldRequest(READERS, READERS_TERMS, tuple(SCOPE["ops.hourly"]))], wave=0, actor=ANA
    )
    ledger.holds.acknowledge(alone.hold_id, ANA)
    with pytest.raises(PublishHeld, match="the ready table is no longer held"):
        ledger.publications.intend(
            run_id, "publish", SCOPE["ops.hourly"], table="lake.ops.hourly", person="bo", reason="", detail={},
            lease_seconds=60, actor=ANA, consumers=[READERS], release=release,
        )  # fmt: skip


def _release(office: Office, run_id: str) -> dict[str, Any]:
    """What a publication by a person records, taken from one that failed."""

    def fail() -> None:
        raise EngineError("it failed here")

    with arm("publish.after_intent", fail), suppress(ErrataError):
        office.world.client.publish(run_id, as_="bo")
    found = office.world.workspace.ledger.publications.list(run_id)[-1].release
    return {name: value for name, value in found.items() if name != "set"}


def test_a_ready_table_that_cannot_be_written_blocks_the_campaign(make: Callable[..., Office]) -> None:
    """Readers of the other tables would not know; nobody stays held."""
    office = make()
    office.world.lake.ready.broken = "the catalog does not answer"
    office.run()
    ledger = office.world.workspace.ledger
    members = ledger.members.list(office.campaign.campaign_id).values()
    assert not any(ledger.publications.list(one.run_id) for one in members)
    assert not ledger.holds.list_active()
    office.world.lake.ready.broken = ""
    assert office.run() == "done"


def test_a_campaign_that_takes_the_place_of_another_completes_its_tables(make: Callable[..., Office]) -> None:
    """The tables of both wait until everything is out, whichever campaign brings it."""
    office = make(manual="daily")
    office.run()
    world = office.world
    world.lake.table("lake.ops.monthly").overwrite([{"month": "2026-02", "amount": 5}])
    daily = world.workspace.ledger.members.list(office.campaign.campaign_id)["ops.daily"].run_id
    world.client.publish(daily, as_="bo")
    world.client.run_campaign(office.campaign.campaign_id, publish=True, as_="cy")
    assert office.states()["ops.hourly"] == "settling", "ops.monthly drifted"
    again = world.client.plan_campaign(
        "ops.monthly", partitions="2026-02", reason="again", supersede=office.campaign.campaign_id, as_="ana"
    )  # fmt: skip
    world.client.approve_campaign(again.campaign_id, digest=again.campaign_digest, as_="bo")
    assert set(office.states().values()) <= {"settling", "held"}
    world.client.run_campaign(again.campaign_id, publish=True, as_="cy")
    assert set(office.states().values()) == {"ready"}
    assert {one.state for one in world.lake.ready.rows(READY)} == {"ready"}


def test_a_campaign_waits_for_consumers_of_one_member_and_goes_on_with_others(make: Callable[..., Office]) -> None:
    """Both tables that are computed from ops.daily hold somebody; the shorter wait comes first."""
    office = make()
    held = """consumers:
  board: {owner: ops, reads: [ops.monthly], hold: {before: 2h, at_most: 3h, on_timeout: go}}
  desk: {owner: ops, reads: [ops.rolling], hold: {before: 10min, at_most: 1h, on_timeout: go}}
"""
    office.world.write("errata.yaml", (office.world.root / "errata.yaml").read_text() + held)
    with stopped_clock() as clock:
        office.world.client.close()
        office.world.open(sleep=lambda seconds: clock.move(seconds * 60))
        assert office.run() == "done"
    ledger = office.world.workspace.ledger
    out = {one.product: ledger.publications.list(one.run_id)[0].settled_at or ""
           for one in ledger.members.list(office.campaign.campaign_id).values()}  # fmt: skip
    assert out["ops.rolling"] < out["ops.monthly"]
    assert {one.state for one in office.world.lake.ready.rows(READY)} == {"ready"}


@pytest.mark.slow
def test_a_ledger_on_postgresql_keeps_tables_together(make: Callable[..., Office], postgres: PostgresServer) -> None:
    """The same rules in another database: published, stopped half-way, and rolled back."""
    name = f"sets_{secrets.token_hex(6)}"
    postgres.create_database(name)
    office = make(manual="daily", ledger=postgres.url(name))
    with office.reading():
        office.run()
        assert set(office.states().values()) == {"settling", "held"}
        office.world.client.publish(
            office.world.workspace.ledger.members.list(office.campaign.campaign_id)["ops.daily"].run_id, as_="bo"
        )
        assert office.run() == "done"
        office.roll_back()
    office.read()
    assert office.list_seen() == ["ready old", "wait old", "ready new", "wait new", "ready old"]


def test_evidence_of_a_member_verifies_with_the_holds_of_its_campaign(make: Callable[..., Office]) -> None:
    """Also after its rollback: what the record says about the set is part of what an auditor checks."""
    office = make()
    root = office.world.root
    public = generate_key_pair(root / "errata.key").pem
    office.world.write("errata.yaml", "evidence: {key: errata.key}\n" + (root / "errata.yaml").read_text())
    office.run()
    office.roll_back()
    for one in office.world.workspace.ledger.members.list(office.campaign.campaign_id).values():
        bundle = office.world.client.evidence(one.run_id, with_diff=False, as_="bo")[1]
        assert verify(bundle, [public]).problems == []
