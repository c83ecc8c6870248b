"""In which order items of a queue are paid, whatever is owed, failed, waiting or being paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from errata.model.consumer.outbox import Effect, ItemState, Owed, QueuedItem, find_payable, list_covered

ORDERED = [effect for effect in Effect if not effect.reads_acceptance and not effect.is_strict]
FOLLOWING = [effect for effect in Effect if effect.reads_acceptance]
DAYS = st.frozensets(st.sampled_from("abcd"), max_size=3)


@st.composite
def queues(draw: st.DrawFn, effects: Sequence[Effect] = tuple(Effect), *, calm: bool = False) -> list[QueuedItem]:
    """Open items of one queue, oldest first; ``calm``: none has failed, waits or is being paid."""
    effect = draw(st.sampled_from(effects))
    states = st.just(ItemState.OWED) if calm else st.sampled_from([ItemState.OWED, ItemState.FAILED])
    found = []
    for seq in range(1, draw(st.integers(0, 7)) + 1):
        item = QueuedItem(seq, effect, draw(DAYS), draw(states))
        if not calm and item.state is ItemState.OWED:
            item = replace(item, is_due=draw(st.booleans()))
        found.append(item)
    return found


def claim_all(queue: Sequence[QueuedItem]) -> list[QueuedItem]:
    """The queue after as many payers as possible took an item."""
    found = list(queue)
    while (item := find_payable(found)) is not None:
        found[found.index(item)] = replace(item, is_taken=True)
    return found


def drain(queue: Sequence[QueuedItem]) -> list[QueuedItem]:
    """The items that were paid one after another, without those that were paid with them."""
    left, paid = list(queue), []
    while (item := find_payable(left)) is not None:
        gone = {item, *list_covered(item, left)}
        left = [one for one in left if one not in gone]
        paid.append(item)
    assert left == []
    return paid


@given(queues())
def test_only_what_is_owed_due_and_free_is_paid(queue: list[QueuedItem]) -> None:
    """Nothing that failed is tried again by itself, and nobody takes what another one pays."""
    item = find_payable(queue)
    assert item is None or (item.state, item.is_due, item.is_taken) == (ItemState.OWED, True, False)


@given(queues(ORDERED))
def test_an_item_waits_for_older_ones_of_its_partitions(queue: list[QueuedItem]) -> None:
    """Whether they are owed, being paid or failed."""
    for item in claim_all(queue):
        if item.is_taken:
            assert not [older for older in queue if older.seq < item.seq and older.overlaps(item)]


@given(queues([Effect.TELL]))
def test_messages_keep_their_order_whatever_they_are_about(queue: list[QueuedItem]) -> None:
    """Receivers drop a number that is lower than one before, so only the oldest may go."""
    assert [item.seq for item in claim_all(queue) if item.is_taken] in ([], [queue[0].seq] if queue else [])


@given(queues(ORDERED + FOLLOWING), st.sampled_from(ORDERED + FOLLOWING))
def test_disjoint_partitions_do_not_wait_for_each_other(queue: list[QueuedItem], effect: Effect) -> None:
    """An item of its own partition is paid, whatever became of the others."""
    others = [replace(item, effect=effect, partitions=item.partitions or frozenset("a")) for item in queue]
    own = QueuedItem(99, effect, frozenset("z"), ItemState.OWED)
    assert next(item for item in claim_all([*others, own]) if item.seq == 99).is_taken


@given(queues(FOLLOWING))
def test_no_two_items_on_one_partition_are_paid_at_the_same_time(queue: list[QueuedItem]) -> None:
    """Otherwise the slower one could bring back what it read before the other one was caused."""
    taken = [item for item in claim_all(queue) if item.is_taken]
    assert not [(a, b) for a in taken for b in taken if a.seq < b.seq and a.overlaps(b)]


@given(queues(FOLLOWING))
def test_what_failed_does_not_hold_up_a_newer_item_that_reads_the_acceptance(queue: list[QueuedItem]) -> None:
    """A rollback reaches the copy although the copy of the publication failed for good."""
    newest = QueuedItem(99, queue[0].effect if queue else Effect.RECOVER, frozenset("abcd"), ItemState.OWED)
    assert find_payable([replace(item, state=ItemState.FAILED) for item in queue] + [newest]) is newest


@given(queues(calm=True))
def test_a_queue_in_which_nothing_failed_is_drained(queue: list[QueuedItem]) -> None:
    """And each partition ends with its newest item: paid last, or for all older ones."""
    paid = drain(queue)
    for day in "abcd":
        mine = [item.seq for item in queue if not item.partitions or day in item.partitions]
        by = [item.seq for item in paid if not item.partitions or day in item.partitions]
        if mine and not paid[0].effect.reads_acceptance:
            assert by == mine
        elif mine:
            assert max(mine) in by


@given(queues(FOLLOWING))
def test_an_item_is_paid_with_newer_ones_only_and_only_for_their_own_partitions(queue: list[QueuedItem]) -> None:
    """So what is on record as paid was brought about."""
    for item in queue:
        for other in list_covered(item, queue):
            assert other.seq < item.seq
            assert not item.partitions or (other.partitions and other.partitions <= item.partitions)


def test_each_alarm_is_a_queue_of_its_own() -> None:
    """One that failed keeps no other from being sent."""
    alarm = Owed(Effect.ALARM, "break_glass")
    assert alarm.queue("lake.t", alarm.key("bf-1-aa")) != alarm.queue("lake.t", alarm.key("bf-1-bb"))
