"""Bugs to plant in lineage; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

EVENTS = "tests/protocol/test_lineage.py::test_"
COLLECTORS = "tests/protocol/test_lineage_collectors.py::test_"

IN_LINEAGE = (
    Plant(
        "the id of a run is another one each time",
        "engines/lineage/openlineage_events.py",
        "return str(generate_static_uuid(datetime.fromisoformat(key.at), key.text.encode()))",
        "return str(__import__('uuid').uuid4())",
        (f"{EVENTS}a_correction_is_one_run_with_a_child_for_each_chunk",),
    ),
    Plant(
        "a correction that goes on after it failed is the same run",
        "model/lineage/moments.py",
        "            attempt += 1",
        "            attempt = 1",
        (f"{EVENTS}a_correction_that_goes_on_after_it_failed_is_another_run",),
    ),
    Plant(
        "every item tells the whole run again",
        "delivery/lineage/lineage_items.py",
        "after = max((seq for seq in ends if seq < until), default=0)",
        "after = 0",
        (f"{EVENTS}every_moment_is_sent_once",),
    ),
    Plant(
        "an event counts as sent whatever the collector answers",
        "engines/lineage/lineage_sender.py",
        "if 200 <= status < 300:",
        "if status:",
        (f"{COLLECTORS}whatever_a_collector_does_the_events_stay_owed[500]",),
    ),
    Plant(
        "an item counts as paid before its events are sent",
        "delivery/lineage/lineage_delivery.py",
        "    while sent < len(events):",
        "    while sent < 1:",
        (f"{COLLECTORS}a_collector_gets_every_event_with_the_key",),
    ),
    Plant(
        "the suggested command pays lineage",
        "model/consumer/outbox.py",
        "return self is not Effect.LINEAGE",
        "return True",
        (f"{COLLECTORS}a_collector_that_is_down_costs_nothing_and_loses_nothing",),
    ),
    Plant(
        "a failed chunk is told with the message of its error",
        "delivery/lineage/lineage_events.py",
        'error=str(body.get("error_code", ""))',
        "error=str(attempt.error)",
        (f"{EVENTS}a_correction_that_goes_on_after_it_failed_is_another_run",),
    ),
)
