"""Bugs to plant in what is owed and in its payment; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

ORDER = "tests/unit/model/consumer/test_order.py::test_"
PAYING = "tests/unit/delivery/test_payment.py::test_"
MANY = "tests/unit/delivery/test_many_items.py::test_"
OWED = "tests/protocol/test_outbox.py::test_"
LEDGER = "tests/unit/ledger/test_contract.py::TestLedger::test_"

IN_OUTBOX = (
    # ------------------------------------------------------------------------------------------------- owed or not
    Plant(
        "what a publication owes is owed before it is known to have landed",
        "ledger/store/publications.py",
        "owes, actor, pub_id=pub_id, conditional=True)",
        "owes, actor, pub_id=pub_id)",
        (f"{LEDGER}what_a_publication_owes_is_owed_from_its_commit_until_it_is_paid[sqlite]",),
    ),
    Plant(
        "a publication that recovery settles owes nothing",
        "ledger/store/publications.py",
        '            settle_owed(tx, known, actor, landed=outcome == "committed")\n',
        '            if not (body or {}).get("why") and outcome == "abandoned":\n'
        "                settle_owed(tx, known, actor, landed=False)\n",
        (f"{OWED}what_a_killed_publication_owes_is_shown_and_paid_by_deliver",),
    ),
    Plant(
        "an intent that did not land owes all the same",
        "ledger/store/publications.py",
        '            settle_owed(tx, known, actor, landed=outcome == "committed")\n',
        "            settle_owed(tx, known, actor, landed=True)\n",
        (f"{OWED}a_publication_that_did_not_land_owes_nothing",),
    ),
    # ----------------------------------------------------------------------------------------------------- order
    Plant(
        "a reversal does not wait for the corrections that it reverses",
        "model/consumer/outbox.py",
        "        return any(older.overlaps(item) for older in before)\n",
        "        return any(older.overlaps(item) and older.is_taken for older in before)\n",
        (f"{ORDER}an_item_waits_for_older_ones_of_its_partitions",),
    ),
    Plant(
        "messages of other partitions overtake each other",
        "model/consumer/outbox.py",
        "        if self.effect.is_strict or not self.partitions or not other.partitions:\n",
        "        if not self.partitions or not other.partitions:\n",
        (f"{ORDER}messages_keep_their_order_whatever_they_are_about",),
    ),
    Plant(
        "a failed refresh keeps the one after a rollback from being tried",
        "model/consumer/outbox.py",
        "    if not item.effect.reads_acceptance:\n",
        "    if not item.effect.reads_acceptance or any(one.state is ItemState.FAILED for one in before):\n",
        (f"{ORDER}what_failed_does_not_hold_up_a_newer_item_that_reads_the_acceptance",),
    ),
    Plant(
        "two payers refresh one partition at the same time",
        "model/consumer/outbox.py",
        "    taken = any(other.is_taken and other.overlaps(item) for other in (*before, *after))\n",
        "    taken = False\n",
        (f"{ORDER}no_two_items_on_one_partition_are_paid_at_the_same_time",),
    ),
    Plant(
        "a newer item is paid for an older one of more partitions",
        "model/consumer/outbox.py",
        "        return not self.partitions or (bool(other.partitions) and self.partitions >= other.partitions)\n",
        "        return self.overlaps(other)\n",
        (f"{ORDER}an_item_is_paid_with_newer_ones_only_and_only_for_their_own_partitions",),
    ),
    Plant(
        "a payer beyond the first page of a queue is not seen",
        "ledger/outbox/item_rows.py",
        "    seen = {row.item_id: row for row in taken}\n",
        "    seen: dict[int, Row[Any]] = {}\n",
        (f"{LEDGER}what_reads_the_acceptance_is_not_paid_twice_at_the_same_time[sqlite]",),
    ),
    # -------------------------------------------------------------------------------------------------- payment
    Plant(
        "a payer that lost its item records what it did",
        "ledger/outbox/payments.py",
        "    return (found.fence, found.owner, found.state) == (item.fence, item.owner, ItemState.OWED)\n",
        "    return found.is_open or item.fence < 0\n",
        (f"{LEDGER}a_payer_that_lost_its_item_records_nothing[sqlite]",),
    ),
    Plant(
        "missing credentials use up the attempts",
        "ledger/outbox/payments.py",
        '        return self._release(item, 0, {"attempts": item.attempts - 1, "not_before": item.not_before})\n',
        '        return self._release(item, 0, {"not_before": item.not_before})\n',
        (f"{PAYING}missing_credentials_leave_an_item_as_it_is",),
    ),
    Plant(
        "a payer that was interrupted keeps its item until the lease is over",
        "delivery/payment.py",
        "    if owner == current_owner(owner.name) and owner.name not in _active:\n",
        "    if owner == current_owner(owner.name) and owner.name not in _active and not owner.name:\n",
        (f"{PAYING}a_payer_that_dies_is_followed_by_another_with_the_same_key",),
    ),
    Plant(
        "a look at a queue reads all of it",
        "ledger/outbox/item_rows.py",
        "order_by(seq.desc() if newest else seq).limit(size)\n",
        "order_by(seq.desc() if newest else seq)\n",
        (f"{MANY}paying_an_item_costs_the_same_however_many_are_owed",),
    ),
    Plant(
        "validate pays what is owed",
        "publishing/recovery.py",
        "    watch_guard(workspace, actor, table)\n",
        "    from errata.delivery.payment import pay_queues\n\n"
        "    pay_queues(workspace, actor, lambda: workspace.ledger.outbox.queues(table=table))\n"
        "    watch_guard(workspace, actor, table)\n",
        (f"{OWED}validate_cleanup_and_looks_pay_nothing",),
    ),
    Plant(
        "a waived item says nothing about who gave it up",
        "ledger/outbox/payments.py",
        '            values = {"waived_by": actor.person, "waived_why": why, "waived_ready": int(ready)}\n',
        '            values = {"waived_by": None, "waived_why": why, "waived_ready": int(ready)}\n',
        (f"{OWED}only_a_person_waives_with_a_reason_and_the_record_keeps_it",),
    ),
)
