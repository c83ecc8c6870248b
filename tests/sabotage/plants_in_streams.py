"""Bugs to plant around streams that read a corrected table."""

from __future__ import annotations

from sabotage.plant import Plant

STREAM = "tests/unit/model/consumer/test_stream.py::test_"
READERS = "tests/protocol/test_streams.py::test_"

IN_STREAMS = (
    Plant(
        "a repaired reader skips the first append after the publication",
        "model/consumer/stream.py",
        "    offset = Offset(passed[resume].snapshot_id, 0)\n",
        "    offset = Offset(passed[resume].snapshot_id, passed[resume].added_files)\n",
        (f"{STREAM}a_reader_that_read_everything_goes_on_at_the_first_append_after_the_publication",),
    ),
    Plant(
        "appends before the publication are lost to a repaired reader",
        "model/consumer/stream.py",
        "    if unread:\n",
        "    if not unread:\n",
        (f"{STREAM}appends_before_the_publication_are_read_first",),
    ),
    Plant(
        "a batch that was begun is given up",
        "model/consumer/stream.py",
        "    if not position.batch.is_committed:\n",
        "    if position.batch.n < 0:\n",
        (f"{STREAM}a_batch_that_was_begun_is_done_as_it_is",),
    ),
    Plant(
        "a reader with Trigger.AvailableNow fails for ever",
        "model/consumer/stream.py",
        "    first = _set_first_offset(position, anchor)\n",
        "    first: dict[str, bytes] = {}\n",
        (f"{STREAM}every_row_is_read_once_whatever_lies_ahead",),
    ),
    Plant(
        "a copy that misses rows is handed out",
        "model/consumer/stream.py",
        "    if missed or twice:\n",
        "    if missed < 0 or twice:\n",
        (f"{STREAM}a_copy_that_would_miss_or_repeat_rows_is_not_handed_out",),
    ),
    Plant(
        "a reader is brought past what others overwrote",
        "model/consumer/stream.py",
        "    _require_own(checkpoint, table, blockers, own)\n",
        "",
        (f"{READERS}what_others_overwrote_is_never_passed",),
    ),
    Plant(
        "a query with state is moved",
        "model/consumer/stream.py",
        "    if checkpoint.is_stateful:\n",
        "    if not checkpoint.files:\n",
        (f"{READERS}a_checkpoint_that_cannot_be_repaired_refuses_the_plan_by_name",),
    ),
    Plant(
        "a reader that still uses its old checkpoint is confirmed on the copy",
        "model/consumer/effect.py",
        '    if source.digest != step["digest"]:\n',
        "    if not source.digest:\n",
        (f"{READERS}a_reader_that_still_runs_is_not_confirmed",),
    ),
    Plant(
        "a reader that was never started on the copy is confirmed",
        "model/consumer/effect.py",
        "    if not done:\n",
        "    if last is None:\n",
        (f"{READERS}a_reader_that_still_runs_is_not_confirmed",),
    ),
    Plant(
        "a publication does not wait for a reader that still runs",
        "publishing/streams/preconditions.py",
        '    if digest == last.body["digest"]:\n',
        "    if last.body:\n",
        (f"{READERS}a_publication_waits_until_a_reader_that_has_to_stop_is_stopped",),
    ),
    Plant(
        "waves reach streams in different ways",
        "planning/consumer_rules.py",
        "    if len(set(operations)) > 1:\n",
        "    if not operations:\n",
        (f"{READERS}waves_that_streams_would_meet_in_different_ways_are_refused",),
    ),
    Plant(
        "a part of a run reaches streams in another way than the rest",
        "publishing/streams/preconditions.py",
        "    if found != planned:\n",
        "    if not found:\n",
        (f"{READERS}a_part_of_a_run_is_not_published_in_another_way_than_the_rest",),
    ),
    Plant(
        "a reader is handed partitions that were rolled back",
        "delivery/stream_checkpoints.py",
        "    tag = handover_tag(passed[-1].publication, item.consumer)\n",
        "    passed = passed[:1]\n    tag = handover_tag(passed[-1].publication, item.consumer)\n",
        (f"{READERS}a_rollback_is_passed_like_the_publication",),
    ),
)  # fmt: skip
