"""`errata late` and standing approvals on a real ledger and on tables in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from errata.canonical import sha256
from errata.errors import ApprovalRefused, PermissionRefused, UsageError
from errata.evidence.keys import SigningKey, generate_key_pair, load_signing_key
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.testing.lake import FrozenClock
from support.graph_world import PRODUCTS, GraphWorld
from unit.evidence.forging import resealed, unpacked

ROLLING = "ops.rolling"
DAYS = "lake.ops.daily"
BOT = """
  bot: {roles: [operator, publisher], service: true}
  cy: {roles: [approver, publisher]}
"""
Make = Callable[..., GraphWorld]


def product(act: str = "run", **late: object) -> str:
    keys = ", ".join(f"{name}: {value}" for name, value in {"settle": "1h", "act": act, **late}.items())
    return PRODUCTS["rolling"] + f"late: {{{keys}}}\n"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[GraphWorld] = []

    def build(rolling: str | None = None, days: int = 10) -> GraphWorld:
        first = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
        files = {"hourly": "", "daily": "", "monthly": "", "rolling": rolling or product()}
        world = GraphWorld.make(tmp_path / f"world{len(made)}", first=first, days=days, products=files)
        place = world.root / "errata.yaml"
        world.write("errata.yaml", place.read_text().replace("limits:", BOT.strip("\n") + "\nlimits:"))
        made.append(world)
        world.correct(ROLLING, f"{names(world)[0]}..{names(world)[-1]}")
        return world

    yield build
    for world in made:
        world.client.close()


def names(world: GraphWorld) -> list[str]:
    return sorted({at.date().isoformat() for at in world.events})


def change(world: GraphWorld, day: str, by: int = 1) -> None:
    """A late job writes one day again, with slightly more."""
    rows = {str(row["day"]): row["amount"] for row in world.lake.table(DAYS).rows()}
    world.lake.table(DAYS).overwrite([{"day": date.fromisoformat(day), "amount": rows[day] + by}])


def later(world: GraphWorld, **by: float) -> None:
    clock = world.lake.clock
    if not isinstance(clock, FrozenClock):
        clock = FrozenClock(datetime.now(UTC))
        world.lake.clock = clock
        world.client.close()
        world.open()
    clock.advance(**by)


def approve(world: GraphWorld, as_: str = "bo", **scope: Any) -> Any:
    scope = {"changes": {"rows": "5%", "sum(amount)": "10%"}, **scope}
    with pytest.raises(ApprovalRefused) as shown:
        world.client.approve_standing(ROLLING, digest=None, as_=as_, **scope)
    digest = shown.value.fields["standing"].digest
    return world.client.approve_standing(ROLLING, digest=digest, as_=as_, **scope)


def look(world: GraphWorld) -> Any:
    (found,) = world.client.late(as_="bot").products
    return found


def test_a_look_reports_and_leaves_what_changed_a_moment_ago(make: Make) -> None:
    """Until its input has been quiet for ``settle``; the report changes nothing."""
    world = make(product("report"))
    day = names(world)[-3]
    change(world, day)
    found = look(world)
    assert (found.stale[0], found.settling, found.run_id) == (day, found.stale, None)
    assert world.client.late(as_="bot").ok, "nothing is left for a person while inputs are not quiet"
    later(world, hours=2)
    found = look(world)
    assert (found.settling, found.run_id, len(found.stale)) == ((), None, 3)
    assert not world.client.late(as_="bot").ok


def test_an_input_that_is_never_quiet_is_taken_after_the_latest_time(make: Make) -> None:
    """A day that changes every half hour would otherwise wait for ever."""
    world = make(product("propose", latest="3h"))
    later(world, hours=0)
    day = names(world)[-1]
    for _ in range(6):
        change(world, day)
        found = look(world)
        assert (found.settling, found.run_id) == ((day,), None)
        later(world, minutes=30)
    later(world, minutes=1)
    change(world, day)
    found = look(world)  # three hours after the first look, and its input changed a moment ago
    assert (found.settling, found.taken, found.state) == ((), (day,), "planned")


def test_a_proposal_is_a_plan_that_a_person_approves(make: Make) -> None:
    """At most so many partitions, the oldest first; the next look does not plan them again."""
    world = make(product("propose", partitions=2))
    day = names(world)[-3]
    change(world, day)
    later(world, hours=2)
    found = look(world)
    assert (found.taken, found.state, found.standing) == (tuple(names(world)[-3:-1]), "planned", None)
    again = look(world)
    assert (again.claimed, again.taken) == ({found.run_id: found.taken}, tuple(names(world)[-1:]))
    third = look(world)
    assert (third.run_id, third.next) == (None, f"errata approve {again.run_id} --as bo")
    assert not world.client.late(as_="bot").ok
    world.client.approve(found.run_id, digest=world.client.show(found.run_id).digest, as_="bo")


def test_a_standing_approval_covers_a_run_from_plan_to_publication(make: Make) -> None:
    """Nobody approves or releases; the record says under which decision it went, and nothing is stale afterwards."""
    world = make()
    approved = approve(world)
    assert (approved.counts, approved.why) == (True, "")
    change(world, names(world)[-3])
    later(world, hours=2)
    found = look(world)
    assert (found.state, found.why, found.standing) == ("published", "", approved.digest)
    assert world.client.stale(ROLLING).ok
    assert world.client.late(as_="bot").ok
    (use,) = world.client.standing(ROLLING).standing[0].uses
    assert (use.run_id, use.state, use.partitions) == (found.run_id, "published", 3)
    assert world.client.audit_verify().ok
    (quorum,) = [world.client.status(found.run_id).approvals]
    assert quorum == ()


def test_without_a_standing_approval_a_person_approves(make: Make) -> None:
    """``act: run`` then only proposes."""
    world = make()
    change(world, names(world)[-1])
    later(world, hours=2)
    found = look(world)
    assert (found.state, found.standing) == ("planned", None)
    assert "no standing approval" in found.why


@pytest.mark.parametrize(
    "old, new",
    [
        ("version: 1.0.0", "version: 1.0.1"),
        ("lookback: 2d", "lookback: 3d"),
        ("owner: ops", "owner: ops\nchecks: [{metric: rowCount, mustBeGreaterThan: 0}]"),
        ("owner: ops", "owner: ops\nclassified: [amount]"),
    ],
)
def test_it_covers_the_product_as_it_was_approved_only(make: Make, old: str, new: str) -> None:
    """Code, inputs, checks, masks: whatever changes needs a new decision."""
    world = make()
    approve(world)
    world.write("products/rolling.yaml", product().replace(old, new))
    change(world, names(world)[-1])
    later(world, hours=2)
    found = look(world)
    assert (found.state, found.standing) == ("planned", None)
    assert "the product changed" in found.why
    assert not world.client.standing(ROLLING).standing[0].counts


def test_it_covers_the_tables_that_were_approved_only(make: Make) -> None:
    """A table that was dropped and made again under the same name is another one."""
    world = make()
    approve(world)
    rows = list(world.lake.table(DAYS).rows())
    world.lake.create(DAYS, {"day": "date", "amount": "long"}, partition=("day", "identity"))
    world.lake.table(DAYS).append(rows)
    later(world, hours=2)
    assert look(world).standing is None


def test_the_limits_of_a_day_are_counted(make: Make) -> None:
    """Runs and partitions; what is over the limit waits, and is not planned either."""
    world = make()
    approve(world, runs_per_day=1)
    change(world, names(world)[-1])
    later(world, hours=2)
    assert look(world).state == "published"
    change(world, names(world)[-1])
    later(world, hours=2)
    found = look(world)
    assert (found.run_id, "1 run used it" in found.why) == (None, True)
    approve(world, runs_per_day=9, partitions_per_day=1)
    assert "partitions were used" in look(world).why


def test_two_looks_at_once_count_the_limit_once(make: Make) -> None:
    """Each use is counted in the transaction that seals its run."""
    world = make()
    approve(world, runs_per_day=1, partitions_per_run=1)
    change(world, names(world)[-3])
    later(world, hours=2)
    clients = [world.client, GraphWorld(world.root, world.lake, world.events, world.transforms)]
    clients[1].open()
    gate, found = threading.Barrier(2), list[Any]()

    def work(client: Any) -> None:
        gate.wait()
        found.append(client.late(as_="bot").products[0])

    threads = [threading.Thread(target=work, args=(one,)) for one in (world.client, clients[1].client)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clients[1].client.close()
    assert len(world.client.standing(ROLLING).standing[0].uses) == 1


@pytest.mark.parametrize("place", ["run.after_start", "validate.after_measure", "publish.after_release"])
def test_a_look_that_another_one_overtakes_reports_what_was_done(make: Make, place: str) -> None:
    """Two schedulers at once: one run, one publication, no error, and the standing approval still counts."""
    world = make()
    approve(world)
    change(world, names(world)[-3])
    later(world, hours=2)
    other = GraphWorld(world.root, world.lake, world.events, world.transforms)
    other.open()
    seen: list[Any] = []

    def overtake() -> None:
        if not seen:
            seen.append(None)
            seen[0] = other.client.late(as_="bot").products[0]

    with arm(place, overtake):
        found = look(world)
    other.client.close()
    assert {(one.run_id, one.state, one.why) for one in (found, seen[0])} == {(found.run_id, "published", "")}
    (standing,) = world.client.standing(ROLLING).standing
    assert (standing.counts, len(standing.uses)) == (True, 1)


def test_a_change_that_is_too_large_is_not_published_and_suspends_it(make: Make) -> None:
    """The gate judges by the limits that were approved; a person renews, and then it covers again."""
    world = make()
    approve(world)
    change(world, names(world)[-1], by=100_000)
    later(world, hours=2)
    found = look(world)
    assert found.state == "needs_acceptance"
    (state,) = world.client.standing(ROLLING).standing
    assert (state.counts, "the gate found something" in state.why) == (False, True)
    world.client.cancel(found.run_id, reason="wrong file", as_="ana")
    assert not world.client.standing(ROLLING).standing[0].counts  # the verdict stays on record
    change(world, names(world)[-1], by=-99_999)
    later(world, hours=2)
    assert look(world).standing is None
    assert approve(world).counts


def test_a_rollback_suspends_it(make: Make) -> None:
    """Until a person renews."""
    world = make()
    approve(world)
    change(world, names(world)[-1])
    later(world, hours=2)
    run = look(world).run_id
    world.client.rollback(run, reason="no", as_="bo")
    state = world.client.standing(ROLLING).standing[0]
    assert (state.counts, "was rolled back" in state.why) == (False, True)
    assert approve(world).counts


def test_closed_periods_old_and_new_partitions_are_never_covered(make: Make) -> None:
    """Whatever the limits say."""
    world = make()
    approve(world, oldest="2d")
    change(world, names(world)[0])
    later(world, hours=2)
    found = look(world)
    assert (found.standing, "is older than 2d" in found.why) == (None, True)
    locked = make()
    locked.write("products/rolling.yaml", product() + f"protect: {{locked: ['{names(locked)[-1]}']}}\n")
    approve(locked)
    change(locked, names(locked)[-1])
    later(locked, hours=2)
    found = look(locked)
    assert (found.run_id, "closed books" in found.why) == (None, True)


def test_revocation_and_roles_are_checked_at_publication(make: Make) -> None:
    """A run that is validated when its approval is revoked, or when its approver loses the role, is not published."""
    for revoke in (True, False):
        world = make()
        approve(world)
        change(world, names(world)[-1])
        later(world, hours=2)
        world.write("products/rolling.yaml", product())
        _stop_before_publication(world)
        run = world.client.status().runs[0].run_id
        if revoke:
            world.client.revoke_standing(ROLLING, note="not now", as_="bo")
        else:
            text = (world.root / "errata.yaml").read_text()
            world.write("errata.yaml", text.replace("bo: {roles: [approver, publisher]}", "bo: {roles: [publisher]}"))
        with pytest.raises(ApprovalRefused, match="standing approval"):
            world.client.publish(run, as_="bot")


def _stop_before_publication(world: GraphWorld) -> None:
    from errata.approval.standing import find_current_standing
    from errata.commands.plan.plan import make_plan
    from errata.model.audit import Actor
    from errata.model.product import Role
    from errata.planning.request import Request

    actor = Actor("bot", "bot", "host")
    standing = find_current_standing(world.workspace, ROLLING, "bot")
    request = Request(ROLLING, "late", "bot", partitions=[names(world)[-1]])
    plan = make_plan(world.workspace, actor, request, dry_run=False, role=Role.OPERATOR, standing=standing)
    world.client.run(plan.run_id, as_="bot")
    world.client.validate(plan.run_id, as_="bot")


def test_a_look_continues_what_an_earlier_one_left(make: Make) -> None:
    """A process that dies between its steps costs nothing but time, and no second use."""
    world = make()
    approve(world)
    change(world, names(world)[-1])
    later(world, hours=2)
    _stop_before_publication(world)
    found = look(world)
    assert found.state == "published"
    assert len(world.client.standing(ROLLING).standing[0].uses) == 1


def test_only_people_who_may_approve_give_one(make: Make) -> None:
    """Neither the requester's account nor a service, and never without a limit on rows."""
    world = make()
    for person in ("ana", "bot"):
        with pytest.raises(PermissionRefused):
            world.client.approve_standing(ROLLING, digest=None, changes={"rows": "5%"}, as_=person)
    with pytest.raises(UsageError, match="without a limit on rows"):
        world.client.approve_standing(ROLLING, digest=None, changes={"sum(amount)": "5%"}, as_="bo")
    with pytest.raises(ApprovalRefused, match="is not the digest"):
        world.client.approve_standing(ROLLING, digest="0" * 64, changes={"rows": "5%"}, as_="bo")


def test_a_product_without_the_key_is_refused_by_name(make: Make) -> None:
    """There is nothing that it says about late data."""
    world = make(PRODUCTS["rolling"])
    with pytest.raises(UsageError, match="expected the key late"):
        world.client.late(ROLLING, as_="bot")


def export(world: GraphWorld, place: Path) -> tuple[bytes, bytes, SigningKey]:
    """The bundle of a run under a standing approval that was revoked and given again, with its keys."""
    public = generate_key_pair(place / "signing.key")
    text = (world.root / "errata.yaml").read_text()
    world.write("errata.yaml", f"{text}evidence: {{key: {place / 'signing.key'}}}\n")
    approve(world)
    world.client.revoke_standing(ROLLING, note="books are closed", as_="cy")
    approve(world, as_="cy")
    change(world, names(world)[-1])
    later(world, hours=2)
    _, bundle = world.client.evidence(look(world).run_id, as_="bo")
    return bundle, public.pem, load_signing_key("signing.key", place)


def test_the_evidence_of_a_covered_run_shows_who_decided_what(make: Make, tmp_path: Path) -> None:
    """The scope, the decisions on it with their audit entries, and the use are in the bundle."""
    bundle, public, _ = export(make(), tmp_path)
    told = verify(bundle, [public])
    assert told.problems == []
    assert any("STANDING APPROVAL: cy approved runs like this one in advance" in one for one in told.warnings)
    entries = [json.loads(line) for line in unpacked(bundle)["audit/entries.jsonl"].splitlines()[1:]]
    whole = [json.loads(one["content"])["action"] for one in entries if "content" in one]
    assert whole[:3] == ["standing.approved", "standing.revoked", "standing.approved"]


def _widen(row: dict[str, Any]) -> None:
    row["subject"] = row["subject"].replace('"partitions_per_run":7', '"partitions_per_run":700')


def _widen_with_its_digest(row: dict[str, Any]) -> None:
    _widen(row)
    row["digest"] = sha256(row["subject"].encode())


def _name_another_person(row: dict[str, Any]) -> None:
    row["decisions"][2]["person"] = row["decisions"][0]["person"]


def _make_it_an_approval(row: dict[str, Any]) -> None:
    row["decisions"][1]["decision"] = "approved"


def _leave_the_revocation_out(row: dict[str, Any]) -> None:
    del row["decisions"][1]


def _invent_an_approval(row: dict[str, Any]) -> None:
    row["decisions"].append({**row["decisions"][2], "audit_seq": row["decisions"][2]["audit_seq"] + 1})


@pytest.mark.parametrize(
    "lie, said",
    [
        (_widen, "lacks the content of the standing approval"),
        (_widen_with_its_digest, "lacks the content of the standing approval"),
        (_name_another_person, "does not say so"),
        (_make_it_an_approval, "does not say so"),
        (_leave_the_revocation_out, "lacks the decision of audit entry"),
        (_invent_an_approval, "does not say so"),
    ],
)
def test_a_lie_about_a_standing_approval_is_contradicted(
    make: Make, tmp_path: Path, lie: Callable[[dict[str, Any]], None], said: str
) -> None:
    """Whoever holds the key can sign anything; the digest that was decided on, and the audit, say otherwise."""
    bundle, public, key = export(make(), tmp_path)
    forged = resealed(bundle, key, decisions=lambda data: lie(data["standing"][0]))
    told = verify(forged, [public])
    assert any(said in one.problem for one in told.problems), told.problems


def test_a_run_without_the_standing_approval_that_it_used_is_refused(make: Make, tmp_path: Path) -> None:
    """The use names a digest that has to be looked up."""
    bundle, public, key = export(make(), tmp_path)
    forged = resealed(bundle, key, decisions=lambda data: data.pop("standing") and None)
    assert any("lacks the content" in one.problem for one in verify(forged, [public]).problems)
