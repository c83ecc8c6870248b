"""Bugs to plant in inputs in Kafka."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_TOPICS"]

RANGES = "tests/unit/model/test_topic_ranges.py::test_"
READS = "tests/unit/model/test_topic_reads.py::test_"
OUT = "tests/protocol/test_backfill_topics.py::test_"
EVENTS = "tests/protocol/test_correction_events.py::test_"

IN_TOPICS = (
    Plant(
        "records that came to a topic since the plan make nothing stale",
        "model/kafka/topic_reads.py",
        "    return now.end != then.end or now.start < then.start or (now.start > then.start and not is_cut)\n",
        "    return now.start < then.start or (now.start > then.start and not is_cut)\n",
        (f"{READS}only_records_that_came_since_make_a_difference",),
    ),
    Plant(
        "a topic that was created again passes as the one that was read",
        "model/kafka/topic_reads.py",
        "    if then.topic_id != now.topic_id:\n        return True\n",
        "",
        (f"{READS}a_topic_that_was_created_again_has_other_records",),
    ),
    Plant(
        "every chunk of a change log reads it again",
        "planning/build.py",
        "        most if project.chunk_bytes else most + _measure_logs(product, inputs),\n",
        "        most,\n",
        ("tests/unit/planning/test_build.py::test_a_change_log_alone_is_no_reason_for_more_chunks",),
    ),
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
    Plant(
        "rows of a publication that was rolled back are sent",
        "delivery/topics/row_delivery.py",
        "if one.origin_pub_id == self.item.pub_id} - self.erased\n",
        "} - self.erased\n",
        (f"{OUT}after_a_rollback_nothing_more_goes_out",),
    ),
    Plant(
        "a payment that failed counts what it has not sent as sent",
        "delivery/topics/row_delivery.py",
        "        done, left_out = done + 1, left_out | rows.left_out\n",
        "        done, left_out = len(attempts), left_out | rows.left_out\n",
        (f"{OUT}a_topic_that_fails_half_way_is_continued_where_it_stopped",),
    ),
    Plant(
        "rows with the same key are kept for a topic",
        "engines/emitted_check.py",
        "    if keys != rows:\n",
        "    if False:\n",
        (f"{OUT}rows_that_consumers_could_not_tell_apart_fail_the_chunk",),
    ),
    Plant(
        "the reverse of events that never went out is sent",
        "delivery/topics/correction_events.py",
        "        left |= set(partitions) & set(told.get(LEFT_OUT, partitions))\n",
        "        left |= set()\n",
        (f"{EVENTS}what_was_rolled_back_before_it_was_sent_never_goes_out",),
    ),
)
