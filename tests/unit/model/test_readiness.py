"""Readiness: which state counts, which snapshot is named, and that ranges say the same as partitions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.readiness import (
    Claim,
    Landing,
    PartitionReadiness,
    ReadyState,
    are_readable,
    fold_readiness,
    is_unsettled,
    judge_readiness,
)
from errata.model.partition import NULL, Grain, parse_list

R = ReadyState
START = datetime(2026, 5, 1, tzinfo=UTC)
DAYS = [(date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(12)]
SCOPES = st.lists(st.sampled_from([*DAYS, NULL]), unique=True, min_size=1, max_size=6).map(tuple)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


CLAIMS = st.builds(
    Claim,
    state=st.sampled_from([R.ANNOUNCED, R.HELD, R.PUBLISHING, R.SETTLING]),
    run_id=st.sampled_from(["bf-1", "bf-2", "bf-3"]),
    partitions=SCOPES,
    since=st.integers(0, 50).map(at),
    snapshot_id=st.sampled_from([None, "77"]),
)


@given(claims=st.lists(CLAIMS, max_size=5))
def test_a_partition_may_be_read_exactly_if_nothing_but_an_announcement_claims_it(claims: list[Claim]):
    """Whatever else goes on, a hold, a publication or unpaid work keeps readers out, and nothing else does."""
    found = judge_readiness(claims, (), START)
    assert found.keys() == {name for claim in claims for name in claim.partitions}
    for name, one in found.items():
        states = {claim.state for claim in claims if name in claim.partitions}
        assert one.state in states
        assert one.state.can_read is (states == {R.ANNOUNCED})


@given(claims=st.lists(CLAIMS, max_size=4), more=CLAIMS)
def test_one_more_claim_never_lets_a_reader_in(claims: list[Claim], more: Claim):
    """Runs that know nothing of each other cannot open each other's partitions."""
    before, after = judge_readiness(claims, (), START), judge_readiness([*claims, more], (), START)
    assert all(not after[name].state.can_read for name, one in before.items() if not one.state.can_read)


@given(found=st.dictionaries(st.sampled_from([*DAYS, NULL]), st.sampled_from([
    PartitionReadiness(R.READY, "bf-1", "7", "a"), PartitionReadiness(R.HELD, "bf-2", "7", "a"),
    PartitionReadiness(R.READY, "bf-1", "8", "a"),
])))  # fmt: skip
def test_ranges_say_of_every_partition_what_was_found_and_of_no_other(found: Mapping[str, PartitionReadiness]):
    """A reader who compares a partition with both ends gets one row, with its state."""
    ranges = fold_readiness(Grain.DAY, found)
    expanded: dict[str, PartitionReadiness] = {}
    for one in ranges:
        names = parse_list(Grain.DAY, f"{one.first}..{one.last}") if one.first != NULL else (NULL,)
        assert expanded.keys().isdisjoint(names)
        expanded |= dict.fromkeys(names, one.found)
    assert expanded == dict(found)
    for name in (*DAYS, NULL):
        hits = [one.found for one in ranges if one.first <= name <= one.last]
        assert hits == ([found[name]] if name in found else []), "text comparison, as SQL does it"


def test_values_have_no_neighbours():
    """Between two tenants there may be a third, so each has a row of its own."""
    held = PartitionReadiness(R.HELD, "bf-1", None, "a")
    assert [(one.first, one.last) for one in fold_readiness(Grain.VALUE, {"a": held, "b": held})] == [
        ("a", "a"), ("b", "b"),
    ]  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int, tuple[str, ...]]]:
    """Publications as (intended, committed, settled, partitions): those in flight together share no partition."""
    made: list[tuple[int, int, int, tuple[str, ...]]] = []
    for _ in range(draw(st.integers(1, 7))):
        intended = draw(st.integers(0, 60))
        committed = intended + draw(st.integers(1, 20))
        settled = committed + draw(st.integers(1, 20))
        scope = set(draw(SCOPES))
        for other in made:
            if intended <= other[2] and other[0] <= settled:
                scope -= set(other[3])
        if scope and committed not in {one[1] for one in made}:
            made.append((intended, committed, settled, tuple(scope)))
    return made


@settings(max_examples=300)
@given(histories())
def test_the_named_snapshot_holds_what_was_accepted_whatever_the_order_of_commits(
    history: list[tuple[int, int, int, tuple[str, ...]]],
):
    """Publications of other partitions may be settled in another order than they were committed in."""
    by_commit = sorted(history, key=lambda one: one[1])
    content: dict[str, dict[str, int]] = {}  # snapshot → partition → publication
    main: dict[str, int] = {}
    for n, (_, committed, _, scope) in enumerate(by_commit):
        main = main | dict.fromkeys(scope, n)
        content[str(committed)] = main
    accepted: dict[str, int] = {}
    for n, (_, _, _, scope) in sorted(enumerate(by_commit), key=lambda one: one[1][2]):
        accepted |= dict.fromkeys(scope, n)
    landings = [
        Landing(f"bf-{n}", str(committed), at(intended), at(settled), tuple(p for p in scope if accepted[p] == n))
        for n, (intended, committed, settled, scope) in sorted(enumerate(by_commit), key=lambda one: one[1][2])
    ]
    for name, one in judge_readiness((), landings, START).items():
        assert one.snapshot_id is not None
        assert content[one.snapshot_id][name] == accepted[name]


def test_publications_that_follow_each_other_leave_one_snapshot_to_read():
    """So a reader can read the whole table at one version."""
    landings = [
        Landing("bf-1", "10", at(0), at(5), (DAYS[0],)),
        Landing("bf-2", "20", at(6), at(9), (DAYS[1],)),
    ]
    found = judge_readiness((), landings, START)
    assert {one.snapshot_id for one in found.values()} == {"20"}


def test_a_snapshot_that_nothing_keeps_any_more_is_not_named():
    """Seven days after the publication its tag may be gone; then main is read as it is."""
    landings = [Landing("bf-1", "10", at(0), at(5), (DAYS[0],))]
    for days, named in ((6, "10"), (8, None)):
        found = judge_readiness((), landings, START + timedelta(days=days))
        assert found[DAYS[0]].snapshot_id == named


def test_while_readers_wait_the_snapshot_from_before_is_named():
    """A claim names its own; one that does not leaves the snapshot of the newest publication."""
    landings = [Landing("bf-1", "10", at(0), at(5), (DAYS[0],))]
    held = Claim(R.HELD, "bf-2", (DAYS[0], DAYS[1]), at(9), "15")
    announced = Claim(R.ANNOUNCED, "bf-2", (DAYS[0], DAYS[1]), at(8), None)
    assert judge_readiness([announced], landings, START) == {
        DAYS[0]: PartitionReadiness(R.ANNOUNCED, "bf-2", "10", at(8)),
        DAYS[1]: PartitionReadiness(R.ANNOUNCED, "bf-2", None, at(8)),
    }
    assert judge_readiness([held, announced], landings, START) == {
        name: PartitionReadiness(R.HELD, "bf-2", "15", at(9)) for name in DAYS[:2]
    }


def test_ready_counts_from_the_last_payment():
    """A cache that took an hour makes the partition ready an hour later."""
    landings = [Landing("bf-1", "10", at(0), at(5), (DAYS[0],), recovered_at=at(3600))]
    assert judge_readiness((), landings, START)[DAYS[0]].since == at(3600)


@pytest.mark.parametrize("effect, state", list(product(Effect, ItemState)))
def test_only_unpaid_effects_on_what_readers_see_keep_a_partition_from_being_ready(effect: Effect, state: ItemState):
    """A dead message channel holds up nobody; a waived refresh does, unless the waiver says that it is ready."""
    expected = effect is Effect.RECOVER and state in (ItemState.OWED, ItemState.FAILED, ItemState.WAIVED)
    assert is_unsettled(effect, state) is expected
    assert is_unsettled(effect, state, waived_ready=True) is (expected and state is not ItemState.WAIVED)


def test_other_partitions_do_not_matter_to_a_reader():
    """Readiness is asked for some partitions or for all of them."""
    found = judge_readiness([Claim(R.HELD, "bf-1", (DAYS[0],), at(0))], (), START)
    assert not are_readable(found)
    assert are_readable(found, [DAYS[1]])
