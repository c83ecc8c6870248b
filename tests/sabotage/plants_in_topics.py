"""Bugs to plant in inputs in Kafka."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_TOPICS"]

RANGES = "tests/unit/model/test_topic_ranges.py::test_"

IN_TOPICS = (
    Plant(
        "a time of a producer ends a range",
        "model/kafka/topic_range.py",
        "        end = ends.get(log.partition) if state.clock == BROKER else None\n",
        "        end = ends.get(log.partition)\n",
        (f"{RANGES}a_time_bounds_the_end_only_where_the_broker_sets_it",),
    ),
    Plant(
        "a log that begins inside the range passes as whole",
        "model/kafka/topic_range.py",
        "        if log.earliest == 0 or (log.first_ms is not None and log.first_ms < from_ms):\n",
        "        if log.earliest == 0 or log.first_ms is not None:\n",
        (f"{RANGES}a_log_that_begins_inside_the_range_has_lost_records",),
    ),
    Plant(
        "a topic of the same name passes as the planned one",
        "model/kafka/topic_range.py",
        "    if state.topic_id != pin.topic_id:\n",
        "    if False:\n",
        (f"{RANGES}a_topic_that_is_not_as_planned_is_not_read",),
    ),
    Plant(
        "records that retention removed since the plan are not missed",
        "model/kafka/topic_range.py",
        "        elif one.size and log.earliest > one.start:\n",
        "        elif one.size and log.earliest > one.end:\n",
        (f"{RANGES}a_topic_that_is_not_as_planned_is_not_read",),
    ),
)
