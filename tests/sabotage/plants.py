"""Bugs to plant: each is one change of the source that the named tests, and nobody else, are relied on to notice.

A plant stands for a whole way of going wrong. Its text must be found in the file exactly once, so that a plant that
the code has outgrown is repaired and not skipped.
"""

from __future__ import annotations

from sabotage.plant import Plant
from sabotage.plants_in_change_logs import IN_CHANGE_LOGS
from sabotage.plants_in_copies import IN_COPIES
from sabotage.plants_in_holds import IN_HOLDS
from sabotage.plants_in_iceberg import IN_ICEBERG
from sabotage.plants_in_lanes import IN_LANES
from sabotage.plants_in_lineage import IN_LINEAGE
from sabotage.plants_in_messages import IN_MESSAGES
from sabotage.plants_in_monitoring import IN_MONITORING
from sabotage.plants_in_outbox import IN_OUTBOX
from sabotage.plants_in_privacy import IN_PRIVACY
from sabotage.plants_in_reconstruction import IN_RECONSTRUCTION
from sabotage.plants_in_recordings import IN_RECORDINGS
from sabotage.plants_in_snowflake import IN_SNOWFLAKE
from sabotage.plants_in_staleness import IN_STALENESS
from sabotage.plants_in_streams import IN_STREAMS
from sabotage.plants_in_submissions import IN_SUBMISSIONS
from sabotage.plants_in_topics import IN_TOPICS

__all__ = ["PLANTS", "Plant"]

CONTRACT = "tests/unit/ledger/test_contract.py::TestLedger::test_"
ENFORCED = "tests/unit/ledger/test_enforcement.py::test_"
REPLACE = "tests/unit/publishing/test_replacement.py::test_"
CONFLICT = "tests/unit/publishing/test_conflict.py::test_"
CARRY = "tests/unit/publishing/test_carry_over.py::test_"
TURNS = "tests/protocol/test_wave_turns.py::test_"
WAVES = "tests/protocol/test_wave_rules.py::test_"
REBASED = "tests/unit/publishing/test_rebased_publication.py::test_"
FREEZES = "tests/unit/ledger/test_freezes.py::"
SWEEPING = "tests/unit/publishing/test_sweep.py::test_"
NOTICING = "tests/unit/publishing/test_live_writes.py::test_"
READS = "tests/unit/model/test_read_rule.py::test_"
LATE = "tests/unit/publishing/test_late_inputs.py::test_"
THROTTLING = "tests/unit/worker/test_throttle.py::test_"
AUTHORIZING = "tests/unit/approval/test_authorization.py::test_"
RELEASING = "tests/unit/approval/test_release.py::"
REBASING = "tests/unit/live_writers/test_rebase.py::test_"
METADATA = "tests/unit/engines/test_iceberg_metadata.py::test_"
WAITING = "tests/unit/planning/test_completeness.py::test_"
RECORDED = "tests/unit/planning/test_references.py::test_"
VERSIONS = "tests/protocol/test_references.py::test_"
SPREAD = "tests/unit/gate/test_distribution.py::test_"
GAPS = "tests/unit/live_writers/test_foreign_commits.py::test_"
KINDS = "tests/protocol/test_kinds.py::test_"
KNOWN = "tests/protocol/test_known_prior.py::test_"
CAMPAIGNS = "tests/protocol/test_campaigns.py::test_"
PROVED = "tests/protocol/test_campaign_evidence.py::test_"
DBT = "tests/protocol/test_campaign_dbt.py::test_"
SIMULATED = "tests/faults/test_simulation.py::test_the_invariants_hold_where_one_fault_is_frequent"

PLANTS = (
    # --------------------------------------------------------------------------------------------------- transforms
    Plant(
        "a plan seals a query that check refuses",
        "commands/plan/plan.py",
        "        workspace.engines.check_transform(product, may_leave_out=may_leave_out)\n",
        "        pass\n",
        ("tests/unit/testing/test_sql_transforms.py::test_a_broken_query_is_refused_before_anything_is_computed[plan]",),
    ),
    Plant(
        "a retry is advised although the sealed code is at fault",
        "commands/next_step.py",
        "        case S.FAILED if run.needs_new_plan:\n",
        "        case S.FAILED if False:\n",
        ("tests/unit/commands/test_next_step.py",),
    ),
    # ------------------------------------------------------------------------------------------------- completeness
    Plant(
        "a marker of an earlier attempt counts for the files of this one",
        "planning/inputs/completeness.py",
        "    if times.newest_ns is not None and times.marker_ns < times.newest_ns:\n",
        "    if times.newest_ns is not None and times.marker_ns < 0:\n",
        (f"{WAITING}a_marker_counts_unless_a_file_beside_it_is_newer",),
    ),
    Plant(
        "one row of the far future completes every partition for ever",
        "engines/iceberg/metadata/arrival.py",
        "        if latest_ms is not None and at_ms > latest_ms:\n",
        "        if latest_ms is None:\n",
        (f"{METADATA}a_watermark_is_the_newest_value_of_all_files_that_can_be_true",),
    ),
    Plant(
        "look-back that is not complete does not hold up a plan",
        "planning/inputs/completeness.py",
        "    return rule_of_input(source, grain).list_reads(partitions) if source.partition else tuple(partitions)\n",
        "    return tuple(partitions)\n",
        (f"{WAITING}a_partition_waits_exactly_if_something_that_it_reads_waits",),
    ),
    # --------------------------------------------------------------------------------------------------- references
    Plant(
        "a chunk mixes days that read different versions of a reference",
        "planning/packing.py",
        "        for _, alike in groupby(names, key=kinds.get):\n",
        "        for _, alike in groupby(names, key=lambda _: None):\n",
        (f"{RECORDED}no_chunk_mixes_kinds_and_every_partition_is_in_one",
         f"{VERSIONS}chunks_never_mix_versions_and_the_plan_shows_them"),
    ),
    Plant(
        "a reference is read as of the instant after its partition",
        "planning/inputs/references.py",
        "        place = bisect_left(times, end_ms)\n",
        "        place = bisect_left(times, end_ms + 1)\n",
        (f"{VERSIONS}a_commit_at_the_very_end_belongs_to_the_next_day",),
    ),
    Plant(
        "only the newest version of a reference is kept from expiry",
        "model/refs.py",
        "            snapshots += [one for one in pin.snapshot_ids if one not in snapshots]\n",
        "            snapshots += [one for one in pin.snapshot_ids[-1:] if one not in snapshots]\n",
        (f"{RECORDED}every_snapshot_that_is_read_gets_a_tag",
         f"{VERSIONS}chunks_never_mix_versions_and_the_plan_shows_them"),
    ),
    Plant(
        "another version takes the place of one that has expired",
        "planning/inputs/references.py",
        "        elif not log[place - 1].exists:\n",
        "        elif not any(entry.exists for entry in log[place - 1 :]):\n",
        (f"{RECORDED}a_day_reads_the_newest_snapshot_committed_before_it_ended",),
    ),
    Plant(
        "a reference as recorded follows a live write to the newest version",
        "planning/repin.py",
        "    is_fixed = pin.version is not None or pin.reference in READ_AT_ITS_TIME or pin.is_message_log\n",
        "    is_fixed = pin.version is not None or pin.is_message_log\n",
        (f"{VERSIONS}a_reference_with_partitions_stays_at_its_version_after_a_live_write",),
    ),
    # ----------------------------------------------------------------------------------------------------- attempts
    Plant(
        "an attempt is adopted without a look at its fence",
        "ledger/store/chunks.py",
        '            _require_fence(tx, attempt, "chunk.adopted")\n',
        "",
        (f"{CONTRACT}an_expired_lease_is_taken_over_with_a_higher_fence[sqlite]",),
    ),
    Plant(
        "a worker that was taken over prolongs its lease",
        "ledger/store/chunks.py",
        "            if not has_current_fence(tx.conn, attempt):\n                return False\n            values = {",
        "            values = {",
        (f"{CONTRACT}an_expired_lease_is_taken_over_with_a_higher_fence[sqlite]",),
    ),
    Plant(
        "leases are judged by the worker's clock",
        "ledger/store/chunks.py",
        "if held.lease_until <= now_ms:",
        'if held.lease_until <= __import__("time").time() * 1000:',
        ("tests/unit/ledger/test_contention.py::test_a_worker_s_own_clock_decides_nothing",),
    ),
    Plant(
        "chunks that started at the same moment are paid for once",
        "worker/throttle.py",
        "paid = max(paid, entry[0]) + entry[column]",
        "paid = entry[0] + entry[column]",
        (f"{THROTTLING}chunks_that_started_at_the_same_moment_are_paid_for_one_after_the_other",),
    ),
    Plant(
        "a limit on rows of input counts rows of output",
        "ledger/store/progress.py",
        'chunk_table.c.rows.label("input_rows")',
        'func.coalesce(attempt_table.c.rows, chunk_table.c.rows).label("input_rows")',
        (f"{CONTRACT}the_pace_of_a_run_is_that_of_all_its_workers[sqlite]",),
    ),
    Plant(
        "a canary is judged by totals of the whole run",
        "model/waves.py",
        '        reconcile=tuple(rule for rule in manifest.reconcile if rule.per != "run"),\n',
        "",
        ("tests/protocol/test_ends_of_runs.py::test_a_canary_is_not_judged_by_rules_over_the_whole_run",),
    ),
    # ---------------------------------------------------------------------------------------------------- live jobs
    Plant(
        "a freeze is granted beside a live job that writes",
        "ledger/store/freezes.py",
        "            writing = tuple(one for one in found if one not in over)\n",
        "            writing = ()\n",
        (f"{FREEZES}TestFreezes::test_a_freeze_waits_for_who_writes_already_and_lets_nobody_in_meanwhile[sqlite]",),
    ),
    Plant(
        "a freeze lapses while its run waits for live jobs",
        "live_writers/freeze.py",
        "        ledger.freezes.renew_freezes(context.run_id, freeze.idle)\n    # nobody",
        "    # nobody",
        ("tests/unit/live_writers/test_freeze.py::test_a_freeze_outlives_the_wait_for_live_jobs",),
    ),
    Plant(
        "a run whose freeze lapsed goes on as if it were frozen",
        "live_writers/freeze.py",
        "    if not found.is_open and ledger.now_ms() < found.most_until:\n",
        "    if False:\n",
        ("tests/unit/live_writers/test_freeze.py::test_a_freeze_that_lapsed_during_the_wait_refuses_the_command",),
    ),
    Plant(
        "a live job that slept goes on beside a freeze",
        "ledger/store/freezes.py",
        "            if row.lease_until <= tx.now_ms and _load_open_freezes(",
        "            if False and _load_open_freezes(",
        (f"{FREEZES}TestFreezes::test_a_silent_job_that_wakes_before_the_freeze_is_granted_has_lost_its_lease[sqlite]",),
    ),
    Plant(
        "a freeze is renewed for ever",
        "ledger/store/freezes.py",
        "_update_freeze(tx, row, lease_until=min(tx.now_ms + int(idle_seconds * 1000), row.most_until))",
        "_update_freeze(tx, row, lease_until=tx.now_ms + int(idle_seconds * 1000))",
        (f"{FREEZES}TestFreezes::test_no_freeze_outlasts_what_its_plan_allows[sqlite]",),
    ),
    Plant(
        "a freeze may be idle for longer than it may last",
        "project/build/publish.py",
        "    if not 0 < found.idle <= found.at_most:\n",
        "    if not 0 < found.idle:\n",
        ("tests/unit/project/test_publish.py::test_what_does_not_fit_the_mode_is_refused_with_a_sentence",),
    ),
    Plant(
        "where live won, what it wrote since is explained from the plan",
        "publishing/replacement.py",
        "found.setdefault(self.rebased.get(name, self.base_snapshot_id), []).append(name)",
        "found.setdefault(self.base_snapshot_id, []).append(name)",
        (f"{REBASED}what_live_wrote_before_the_rebase_is_no_conflict_and_compaction_after_it_is_none",),
    ),
    Plant(
        "live wins over a publication whose commit has expired",
        "live_writers/rebase.py",
        'return sorted(since.union(conflict.fields.get("publications", ())))',
        'return sorted(conflict.fields.get("publications", ()))',
        (f"{REBASING}commits_that_have_expired_are_known_by_the_ledger",),
    ),
    Plant(
        "a delete file of live is no write",
        "publishing/replacement.py",
        "    deleted = _find_new_deletes(order, version)\n",
        "    deleted: dict[str, tuple[Commit, ...]] = {}\n",
        (f"{SIMULATED}[live-delete]",),
    ),
    Plant(
        "a delete file is weighed against the content of its partition",
        "publishing/replacement.py",
        "    verdict = verdict.mark_written(deleted)\n",
        "    verdict = verdict.mark_written({n: c for n, c in deleted.items() if n not in changed})\n",
        (f"{REPLACE}a_delete_file_decides_before_content_is_read",),
    ),
    Plant(
        "delete files count from the plan where live won",
        "publishing/replacement.py",
        "    for base, names in order.group_by_base(order.partitions).items():\n",
        "    for base, names in {order.base_snapshot_id: order.partitions}.items():\n",
        (f"{REBASED}delete_files_count_from_a_partition_s_own_base",),
    ),
    Plant(
        "an equality delete of no partition hits none",
        "publishing/conflict.py",
        '        if delete.partition is None and delete.content == "position_deletes":\n',
        "        if delete.partition is None:\n",
        (f"{CONFLICT}an_equality_delete_that_cannot_be_placed_hits_all_that_it_may_be_about",),
    ),
    Plant(
        "what live wrote into a column that the plan lacks is nothing",
        "publishing/content.py",
        "content.filled(target, head, partitions, since.added) if since.added else {}",
        "{}",
        (f"{REPLACE}a_column_added_since_that_holds_values_is_a_live_write[shared files]",),
    ),
    Plant(
        "content is compared under the names of the plan",
        "publishing/content.py",
        "[since.names.get(name, name) for name in order.content_columns]",
        "order.content_columns",
        (f"{REPLACE}content_is_compared_under_the_names_of_now",),
    ),
    Plant(
        "status tells the same live write each time",
        "publishing/live_writes.py",
        "new = [one for one in found if one.snapshot_id not in known]",
        "new = list(found)",
        (f"{NOTICING}status_records_each_commit_once_whoever_saw_it_first",),
    ),
    Plant(
        "whoever approves is not told what live wrote",
        "commands/plan/approve.py",
        '        notice_live_writes(RunContext(workspace, actor, run, manifest), "approve")\n',
        "        pass\n",
        (f"{NOTICING}whoever_approves_is_told_of_a_live_write_and_it_is_on_the_record",),
    ),
    Plant(
        "a rewrite of source files is late data",
        "publishing/late_inputs.py",
        'if commit.operation != "replace":',
        "if True:",
        (f"{LATE}a_commit_into_a_partition_that_the_run_reads_is_named_and_recorded_once",),
    ),
    Plant(
        "late data in the days around the scope is not told",
        "publishing/late_inputs.py",
        "found = find(workspace, pin, rule.input_grain, rule.list_reads(names))",
        "found = find(workspace, pin, rule.input_grain, tuple(names))",
        (f"{LATE}only_what_the_published_partitions_read_is_looked_at_with_their_look_back",),
    ),
    # -------------------------------------------------------------------------------------------------------- impact
    Plant(
        "the inverse of a look-back is the negated look-back",
        "model/graph/read_rule.py",
        "        return tried[first:last]\n",
        "        return range(ordinal_at(self.grain, self.ahead.move(span.start, -1)),\n"
        "                     ordinal_at(self.grain, self.back.move(span.end, 1) - 1) + 1)\n",
        (f"{READS}an_input_partition_is_read_exactly_by_the_partitions_it_touches",),
    ),
    Plant(
        "the end of a look-back by month runs into the next month",
        "model/graph/read_rule.py",
        "return min(start + into, end - _DAY + into % _DAY)",
        "return start + into",
        (f"{READS}a_look_back_of_a_month_ends_with_the_month",),
    ),
    Plant(
        "hours that look back by month are taken to have no gaps",
        "model/graph/read_rule.py",
        "        if self.grain is Grain.HOUR and (self.back.months or self.ahead.months):\n",
        "        if False:\n",
        (f"{READS}hours_whose_look_back_by_month_goes_back_and_forth_are_all_found",),
    ),
    Plant(
        "a day reads only the first of its hours",
        "model/graph/read_rule.py",
        "            numbers.update(range(first, last + 1))\n",
        "            numbers.update(range(first, last + 1) if self.input_grain is self.grain else (first,))\n",
        ("tests/protocol/test_grains.py::test_a_late_hour_is_corrected_through_day_and_month",),
    ),
    Plant(
        "an input that is read whole touches nothing",
        "model/graph/product_graph.py",
        "        return PartitionSet(is_all=True), Reading(edge.source.name, edge.parent.name, why)\n",
        "        return PartitionSet(), Reading(edge.source.name, edge.parent.name, why)\n",
        ("tests/unit/model/test_product_graph.py::test_a_mapping_that_cannot_be_derived_touches_all_and_says_why",),
    ),
    Plant(
        "an input by another column is mapped as if it were the partition column",
        "model/graph/product_graph.py",
        "    if source.partition != parent.target.column:\n",
        "    if False:\n",
        ("tests/unit/model/test_product_graph.py::test_a_mapping_that_cannot_be_derived_touches_all_and_says_why",),
    ),
    # -------------------------------------------------------------------------------------------------- publications
    Plant(
        "a rollback holds every partition against its earliest publication",
        "commands/publish/rollback.py",
        "        rebased={name: pub.result_snapshot_id for pub in publications "
        "for name in by_publication[pub.pub_id]},\n",
        "",
        ("tests/unit/commands/test_rollback.py::test_a_rollback_holds_each_partition_against_its_own_publication",),
    ),
    Plant(
        "the undo set is not written",
        "publishing/replacement.py",
        "            table.write_undo(\n",
        "            (lambda *_: None)(\n",
        (f"{REPLACE}a_try_that_lands_is_recorded_once_with_its_undo_set",),
    ),
    Plant(
        "rows that were carried over before a shared file changed are published",
        "publishing/carry_over.py",
        "        return self.of == _read_shared_state(files)\n",
        "        return bool(self.times) or self.of == _read_shared_state(files)\n",
        (f"{CARRY}a_shared_file_that_changed_meanwhile_is_carried_over_again",),
    ),
    Plant(
        "shared files that hold no row of the scope are taken out",
        "publishing/carry_over.py",
        "if file.partition is not None or file.path in held)",
        "if held)",
        (f"{CARRY}what_a_shared_file_holds_of_others_is_carried_over_and_files_without_the_scope_stay",),
    ),
    Plant(
        "a commit to a shared file is taken for a write into the scope",
        "publishing/conflict.py",
        "        if shares_files or not history.complete",
        "        if not history.complete",
        (f"{CARRY}commits_prove_nothing_of_partitions_that_share_files",),
    ),
    Plant(
        "an intent that another process closed is tried all the same",
        "publishing/replacement.py",
        "        require_open(order, table.find_outcome(order.target, publication_id))\n",
        "",
        (f"{REPLACE}a_publication_that_another_process_closed_is_not_tried_any_more",),
    ),
    Plant(
        "not published is concluded without a fence",
        "publishing/unrecorded.py",
        "        table.fence(target, publication_id)\n",
        "",
        (f"{REPLACE}settling_fences_before_it_says_no_and_finds_what_landed_meanwhile",),
    ),
    Plant(
        "behind the fence nobody looks again",
        "publishing/unrecorded.py",
        '        failpoint("settle.after_fence")\n        found = table.find_outcome(target, publication_id)\n',
        '        failpoint("settle.after_fence")\n',
        (f"{REPLACE}settling_fences_before_it_says_no_and_finds_what_landed_meanwhile",),
    ),
    Plant(
        "a fence counts although the catalog gave no clear answer",
        "publishing/unrecorded.py",
        "        table.fence(target, publication_id)\n",
        '        with __import__("contextlib").suppress(Exception): table.fence(target, publication_id)\n',
        (f"{REPLACE}without_a_clear_answer_to_the_fence_nothing_is_concluded",),
    ),
    Plant(
        "a main that was set back counts as compaction",
        "publishing/conflict.py",
        "        if shares_files or not history.complete or not commits:\n",
        "        if shares_files:\n",
        (f"{SIMULATED}[main-set-back]",),
    ),
    Plant(
        "a schema that changed with the commit is no alarm",
        "commands/publish/publish.py",
        "warnings = _find_shape_changes(version, context.manifest, snapshot_id)",
        "warnings = ()",
        ("tests/spark/test_table_rules.py::test_a_schema_or_spec_that_changed_with_the_commit_is_an_alarm",),
    ),
    Plant(
        "partitions found in the data are replaced, not those declared",
        "publishing/replacement.py",
        "        remove=found.paths,\n",
        '        remove=tuple(file.path for file in found.remove if order.add.get(file.partition or "")),\n',
        (f"{REPLACE}a_partition_that_is_empty_now_loses_its_old_rows",),
    ),
    Plant(
        "a live write in the scope is no conflict",
        "publishing/replacement.py",
        "    if verdict.written:\n",
        "    if False:\n",
        (f"{REPLACE}a_write_between_check_and_commit_is_a_conflict_behind_a_fence",),
    ),
    Plant(
        "a rollback takes a later write along",
        "publishing/replacement.py",
        "    if verdict.written:\n",
        '    if verdict.written and order.kind == "publish":\n',
        (f"{REPLACE}a_rollback_does_not_take_a_later_write_along",),
    ),
    Plant(
        "compaction counts as a write",
        "publishing/conflict.py",
        'elif any(commit.operation != "replace" for commit in commits):',
        "elif commits:",
        (f"{CONFLICT}a_balanced_rewrite_is_compaction",),
    ),
    Plant(
        "an overwrite that balances counts as compaction",
        "publishing/conflict.py",
        'elif any(commit.operation != "replace" for commit in commits):',
        'elif any(commit.operation == "append" for commit in commits):',
        (f"{CONFLICT}an_overwrite_whose_rows_balance_is_still_a_write",),
    ),
    Plant(
        "partitions are not locked",
        "ledger/store/publications.py",
        "            tx.conn.execute(scope_lock.insert(), locks)\n",
        "",
        (f"{CONTRACT}partitions_under_publication_are_locked[sqlite]",),
    ),
    Plant(
        "a late completion overrides what was settled",
        "ledger/store/publications.py",
        "            if known.state is not PublicationState.INTENDED:\n"
        '                raise _already_settled_error(known, f"{known.kind}.{outcome}")\n',
        "",
        (f"{CONTRACT}an_outcome_is_final[sqlite]",),
    ),
    Plant(
        "acceptance is not written",
        "ledger/store/publications.py",
        "        record_acceptances(tx, known, tx.head_seq + 1)\n",
        "        pass\n",
        (f"{CONTRACT}a_publication_moves_the_run_and_accepts_its_partitions[sqlite]",),
    ),
    Plant(
        "a partition that two later runs replaced counts as rolled back",
        "ledger/store/partition_history.py",
        "        current, under = rows[under]\n",
        "        current, under = rows[under][0], None\n",
        (f"{CONTRACT}a_partition_stays_superseded_however_many_runs_are_published_over_it[sqlite]",),
    ),
    Plant(
        "a wave goes before its pause is over",
        "ledger/store/publications.py",
        "    if now < until:\n",
        "    if now < until and not release:\n",
        ("tests/unit/ledger/test_publication_pauses.py::test_a_second_wave_is_refused_until_the_pause_is_over[sqlite]",),
    ),
    Plant(
        "waves go on after a part was taken back",
        "model/waves.py",
        "WAVE_ACTIONS = (PAUSED, RESUMED, TAKEN_BACK, ",
        "WAVE_ACTIONS = (PAUSED, RESUMED, ",
        (f"{TURNS}only_a_person_resumes_after_a_rollback",),
    ),
    Plant(
        "a wave goes before the one before it",
        "ledger/store/publications.py",
        "wave.n < n and wave.state not in OUT",
        "wave.n < n and wave.state not in OUT and not n",
        ("tests/unit/ledger/test_publication_pauses.py::test_no_wave_goes_before_the_one_before_it[sqlite]",),
    ),
    Plant(
        "a wave that changes more than was sealed goes by itself",
        "approval/wave_release.py",
        "limit.is_exceeded(abs(new - old), old)",
        "limit.is_exceeded(abs(new - new), old)",
        (f"{WAVES}a_wave_that_changes_more_than_the_sealed_limit_waits",),
    ),
    Plant(
        "a wave goes by itself after someone rolled back",
        "approval/wave_release.py",
        '    "rollback.committed": "something was rolled back",\n',
        "",
        (f"{WAVES}whatever_happened_since_makes_a_person_look_again[_roll_back-something was rolled back]",),
    ),
    Plant(
        "a rule that was skipped counts as passed",
        "approval/wave_release.py",
        "    if passed_over := sorted(judged & skipped):",
        "    if passed_over := sorted(judged & set()):",
        ("tests/unit/approval/test_wave_release.py::test_a_rule_that_was_skipped_has_not_judged",),
    ),
    Plant(
        "an accepted warning counts for every wave",
        "gate/warnings.py",
        'digest_of(warned if wave is None else {"wave": wave, "warned": warned})',
        "digest_of([told[1:] for told in warned])",
        (f"{WAVES}an_accepted_warning_counts_for_its_own_wave_only",),
    ),
    Plant(
        "chunks start behind a rejected wave",
        "ledger/store/wave_states.py",
        "    return any(wave.state is WaveState.REJECTED for wave in find_waves(conn, find_run(conn, run_id)))",
        "    return False",
        (f"{WAVES}a_rejected_wave_stops_publication_and_new_chunks",),
    ),
    Plant(
        "rules of the run are judged by the last wave alone",
        "gate/verdict/judge.py",
        "MeasurementIndex({**before, **own})",
        "MeasurementIndex({**own})",
        (f"{WAVES}a_rule_that_may_get_better_counts_with_the_last_wave",),
    ),
    Plant(
        "the undo of earlier waves is not prolonged",
        "commands/publish/publish.py",
        "keep_refs=keep | _prolong_undo(context, undo_days)",
        "keep_refs=keep",
        (f"{WAVES}the_undo_of_the_first_wave_lives_as_long_as_that_of_the_last",),
    ),
    Plant(
        "a run goes on by itself after one of its waves was rolled back",
        "ledger/store/publications.py",
        "        after = RunState.PAUSED\n",
        "        pass\n",
        (f"{WAVES}a_rollback_of_a_wave_pauses_a_run_that_is_still_computed",),
    ),
    Plant(
        "a worker that began before a rebase of a wave reads the pins of the plan",
        "worker/attempt.py",
        "    return job.workspace.ledger.rebases.list(job.run.run_id)",
        "    return ()",
        (f"{WAVES}a_worker_that_began_before_a_rebase_reads_what_is_pinned_anew",),
    ),
    Plant(
        "repacked chunks mix waves",
        "ledger/store/chunk_outcomes.py",
        "row.wave == wave and wanted & set",
        "wanted & set",
        (f"{CONTRACT}chunks_of_several_waves_are_packed_anew_wave_by_wave[sqlite]",),
    ),
    Plant(
        "a name stays when the gate rejects its candidate",
        "commands/publish/preview.py",
        '            if bool(one.told["rejected"]) is passed:\n',
        "            if False:\n",
        ("tests/unit/commands/test_preview.py::test_a_name_that_says_otherwise_than_the_gate_is_withdrawn[False]",),
    ),
    # ------------------------------------------------------------------------------------------------- what is kept
    Plant(
        "what a commit put in hangs on no branch",
        "publishing/replacement.py",
        "            **order.keep_refs,\n",
        "",
        (f"{REPLACE}a_commit_touches_every_ref_it_relies_on",),
    ),
    Plant(
        "what a commit took out hangs on no branch",
        "publishing/replacement.py",
        "            undo_branch(publication_id): order.undo_days,\n",
        "",
        (f"{REPLACE}a_commit_touches_every_ref_it_relies_on",),
    ),
    Plant(
        "a commit lands without the guard",
        "publishing/replacement.py",
        "            GUARD: FOR_EVER_DAYS,\n",
        "",
        (f"{REPLACE}a_commit_touches_every_ref_it_relies_on",),
    ),
    Plant(
        "rows that are written anew hang on no branch",
        "publishing/replacement.py",
        "        refs[branch] = STEP_DAYS\n",
        "",
        (f"{REPLACE}rows_that_are_written_anew_hang_on_a_branch_that_the_commit_touches",),
    ),
    Plant(
        "main before a publication goes before the undo that needs it",
        "publishing/replacement.py",
        "        pre_days=order.undo_days if found.with_deletes else 3,\n",
        "        pre_days=3,\n",
        (f"{REPLACE}main_before_is_kept_for_the_window_where_the_old_files_carry_deletes",),
    ),
    Plant(
        "cleaning up leaves the tags of a rebase",
        "publishing/leftovers.py",
        "    drop += [\n"
        "        tag\n"
        "        for rebase in workspace.ledger.rebases.list(run.run_id)\n"
        "        for tag in list_rebase_tags(run.run_id, run.table, rebase)\n"
        "    ]\n",
        "",
        ("tests/unit/commands/test_cleanup.py::test_cleanup_drops_the_tags_of_a_rebase_with_the_rest_of_a_finished_run",),
    ),
    Plant(
        "the fence of an abandoned publication is swept",
        "publishing/leftovers.py",
        "            drop += [(run.table, ref) for ref in (*undo, *rows)]\n",
        "            drop += [(run.table, ref) for ref in (*undo, fence, *rows)]\n",
        (f"{SWEEPING}the_fence_of_an_abandoned_publication_is_never_swept",),
    ),
    Plant(
        "a worker that is late by a moment loses its branch",
        "publishing/leftovers.py",
        "attempt.lease_until + _GRACE_MS > now",
        "attempt.lease_until > now",
        (f"{SWEEPING}a_dead_worker_process_does_not_end_the_wait_for_its_branch",),
    ),
    Plant(
        "rows in quarantine go while the publication can be undone",
        "publishing/leftovers.py",
        "    if not is_undoable:  # unconditionally",
        "    if True:  # unconditionally",
        (f"{SWEEPING}while_a_publication_can_be_undone_the_rows_in_quarantine_are_kept",),
    ),
    Plant(
        "a branch is dropped under a worker that writes to it",
        "publishing/leftovers.py",
        "any(attempt.state is AttemptState.RUNNING for attempt in workspace.ledger.progress.attempts(run_id))",
        "False",
        (f"{SWEEPING}a_branch_goes_only_after_the_fence_of_its_last_attempt_is_retired",),
    ),
    Plant(
        "refs of a publication that can be undone are swept",
        "publishing/sweep.py",
        " or can_roll_back(workspace, run):",
        ":",
        (f"{SWEEPING}while_a_publication_can_be_undone_nothing_of_its_run_is_swept",),
    ),
    # ------------------------------------------------------------------------------------------------------ decisions
    Plant(
        "an approval is not compared with the digest",
        "ledger/store/approvals.py",
        "            if digest != run.manifest_digest:\n",
        "            if False:\n",
        (f"{CONTRACT}a_decision_over_another_digest_is_refused[sqlite]",),
    ),
    Plant(
        "the requester may approve",
        "model/approval.py",
        "    if _is_same_name(one.person, requester):\n",
        "    if False:\n",
        ("tests/unit/model/test_approval.py::test_what_does_not_count",),
    ),
    Plant(
        "one approval fills any quorum",
        "model/approval.py",
        "return len(self.counted) >= self.quorum",
        "return len(self.counted) >= 1",
        ("tests/unit/model/test_approval.py::test_met_means_enough_others_and_the_owner",),
    ),
    Plant(
        "a release is not bound to its candidate",
        "approval/release.py",
        '    ("there is a new candidate", ("candidate", "candidate_digest")),\n',
        "",
        ("tests/unit/approval/test_release_scope.py::test_each_part_of_the_subject_is_signed",),
    ),
    Plant(
        "a looser product file lifts what the plan wanted from a person",
        "approval/release.py",
        "return not manifest.manual and product is not None and not product.manual",
        "return product is not None and not product.manual",
        (f"{RELEASING}TestByItself::test_a_run_that_was_planned_for_a_person_waits_for_one",),
    ),
    Plant(
        "a verdict is not bound to its candidate",
        "approval/authorization.py",
        "    if facts.candidate_digest != facts.found_digest:\n",
        "    if False:\n",
        (f"{AUTHORIZING}every_failure_is_answered",),
    ),
    Plant(
        "the requester publishes with errata run",
        "approval/authorization.py",
        '    refuse_checking_run(workspace, actor, run, manifest, "run --publish")\n'
        '    refuse_requester(workspace, actor, run.planned_by, "publish", run.run_id)\n',
        '    refuse_checking_run(workspace, actor, run, manifest, "run --publish")\n',
        (f"{RELEASING}TestByItself::test_the_requester_of_a_run_is_refused_before_any_work",),
    ),
    Plant(
        "breaking the glass replaces the acceptance of a warning",
        "approval/authorization.py",
        "    problems += _find_void_acceptances(facts.accepted, facts)\n",
        "    problems += _find_void_acceptances(facts.accepted, facts) if not facts.breaks_glass else []\n",
        (f"{AUTHORIZING}breaking_the_glass_does_not_replace_an_acceptance_that_is_void",),
    ),
    Plant(
        "breaking the glass uses the release of someone else",
        "approval/authorization.py",
        "    if record is None or break_glass:\n",
        "    if record is None:\n",
        (f"{RELEASING}TestBreakGlass::test_it_has_a_release_of_its_own",),
    ),
    Plant(
        "a publication goes ahead under an overtaken verdict",
        "ledger/store/releases.py",
        "    if newest == expected:\n",
        "    if True:\n",
        ("tests/unit/ledger/test_releases.py::test_a_publication_under_an_overtaken_release_is_refused[sqlite]",),
    ),
    Plant(
        "a cost cap without a price holds",
        "planning/guardrails.py",
        "    if most is not None and Decimal(world.core_hour_usd) <= 0:\n",
        "    if most is not None and Decimal(world.core_hour_usd) < 0:\n",
        ("tests/unit/planning/test_guardrails.py::test_a_cost_cap_without_a_price_is_refused[0]",),
    ),
    Plant(
        "a partial count of rows above the limit is no more than a warning",
        "planning/guardrails.py",
        "is_known = known or (most is not None and world.estimate.rows > most)",
        "is_known = known",
        ("tests/unit/planning/test_guardrails.py::test_one_bad_request_shows_all_its_problems",),
    ),
    Plant(
        "an attestation that passes can be published",
        "model/run.py",
        "    if not changes_table:\n",
        "    if False:\n",
        ("tests/protocol/test_kinds.py::test_main_that_is_right_is_attested_without_a_second_person[attest]",),
    ),
    Plant(
        "a run that changes nothing gets a publication by SQL",
        "ledger/schema/trigger_rules.py",
        '        f"EXISTS (SELECT 1 FROM run WHERE run_id = NEW.run_id AND kind {_CHECKING})",  # noqa: S608\n',
        '        "1 = 0",\n',
        (f"{ENFORCED}a_run_that_changes_nothing_gets_no_publication[sqlite-staged-attest]",),
    ),
    Plant(
        "a run is recorded under another kind than was sealed",
        "ledger/schema/trigger_rules.py",
        "NEW.kind $differs (SELECT $kind FROM manifest WHERE digest = NEW.manifest_digest)",
        "1 = 0",
        (f"{ENFORCED}a_run_has_the_kind_that_was_sealed[sqlite]",),
    ),
    Plant(
        "a correction starts without an approval",
        "ledger/schema/trigger_rules.py",
        "OLD.state = 'planned' AND NEW.state = 'running' AND NOT ({_RUN_CHECKS})",
        "OLD.state = 'planned' AND NEW.state = 'running' AND 1 = 0",
        (f"{CONTRACT}a_run_that_may_change_its_table_starts_with_an_approval[sqlite]",),
    ),
    Plant(
        "publish takes a run that only checks",
        "approval/release.py",
        "    if manifest.changes_table:\n        return\n",
        "    return\n",
        (f"{KINDS}a_run_that_changes_nothing_is_never_approved_released_or_published[attest]",),
    ),
    Plant(
        "an attestation compares with main as it is now",
        "gate/candidate.py",
        "manifest.target.base_snapshot_id if manifest.kind == ATTEST else made.base_snapshot_id",
        "made.base_snapshot_id",
        (f"{KINDS}an_attestation_is_about_the_main_that_was_planned",),
    ),
    Plant(
        "rows that only main has are no difference",
        "gate/verdict/same_rows.py",
        "for name in (ADDED, REMOVED, CHANGED)]",
        "for name in (ADDED, CHANGED, CHANGED)]",
        (f"{KINDS}an_attestation_counts_rows_that_one_side_lacks",),
    ),
    Plant(
        "a bootstrap overwrites what is there",
        "planning/kinds.py",
        "    if not full:\n",
        "    if True:\n",
        (f"{KINDS}bootstrap_fills_only_empty_partitions",),
    ),
    Plant(
        "a trial of other code is permission enough",
        "commands/plan/trials.py",
        '(entry.body["product"], entry.body["code"]) == wanted',
        'entry.body["product"] == wanted[0]',
        ("tests/protocol/test_policy.py::test_a_plan_needs_a_trial_of_exactly_this_code",),
    ),
    Plant(
        "a migration passes with other values",
        "gate/verdict/same_rows.py",
        "    if ours != theirs:\n",
        "    if ours == ():\n",
        (f"{KINDS}a_migration_takes_over_every_row_with_its_values",),
    ),
    Plant(
        "a command that answers in JSON asks a person",
        "cli/app/session.py",
        "        if self.json or self.yes:\n",
        "        if self.yes:\n",
        ("tests/unit/cli/test_commands.py::test_nobody_is_asked_with",),
    ),
    # ---------------------------------------------------------------------------------------------- numbers and proof
    Plant(
        "what cannot be audited is done all the same",
        "ledger/audit/chain.py",
        "    tx.conn.execute(\n        audit.insert(),\n",
        '    with __import__("contextlib").suppress(Exception): tx.conn.execute(\n        audit.insert(),\n',
        ("tests/unit/ledger/test_audit.py::test_without_an_audit_entry_nothing_happens[sqlite]",),
    ),
    Plant(
        "the audit is not held against exported heads",
        "ledger/audit/chain_check.py",
        "        if denied := witness.find_contradiction(seq, last):\n",
        "        if denied := None:\n",
        ("tests/unit/ledger/test_exported_heads.py::test_a_log_that_was_written_anew_from_the_start_is_found",),
    ),
    Plant(
        "the signature of a head is not verified",
        "evidence/heads.py",
        "if keys is None else open_envelope(envelope, HEAD_TYPE, keys)",
        "if True else open_envelope(envelope, HEAD_TYPE, keys)",
        ("tests/unit/evidence/test_heads.py",),
    ),
    Plant(
        "evidence holds a sum of a classified column",
        "evidence/diff_summary.py",
        '"sum_before": None if name in diff.masked else change.sum_before,',
        '"sum_before": change.sum_before,',
        ("tests/unit/evidence/test_bundle.py::test_sums_of_a_classified_column_are_in_no_summary",),
    ),
    Plant(
        "evidence says how far values of a classified column moved",
        "evidence/diff_summary.py",
        '"median_percent": None if name in diff.masked else change.median_percent,',
        '"median_percent": change.median_percent,',
        ("tests/unit/evidence/test_bundle.py::test_sums_of_a_classified_column_are_in_no_summary",),
    ),
    Plant(
        "rows in quarantine need not add up",
        "gate/verdict/row_counts.py",
        "if account.read != account.used + account.quarantined + account.suppressed:",
        "if account.read < account.used:",
        ("tests/unit/gate/test_row_counts.py::test_any_single_number_that_is_off_blocks",
         "tests/unit/gate/test_row_counts.py::test_books_that_do_not_balance_block"),
    ),
    Plant(
        "a column that was not compared, because it has too many values, passes",
        "gate/verdict/distribution.py",
        "        return CheckResult(rule.name, partition, None, WARN, message)\n"
        "    now, before = ",
        "        return CheckResult(rule.name, partition, None, OK, message)\n"
        "    now, before = ",
        (f"{SPREAD}a_column_with_too_many_values_is_not_compared_and_does_not_pass",),
    ),
    Plant(
        "only the first quantile of a rule is judged",
        "gate/verdict/distribution.py",
        "    for quantile in rule.quantiles:\n",
        "    for quantile in rule.quantiles[:1]:\n",
        (f"{SPREAD}the_quantile_that_moved_most_decides",),
    ),
    Plant(
        "a checksum does not see which columns are NULL",
        "engines/spark/measure/checksums.py",
        "    parts += [\n"
        "        _null_flags(columns[start : start + _FLAGS_PER_NUMBER]) "
        "for start in range(0, len(columns), _FLAGS_PER_NUMBER)\n"
        "    ]\n",
        "",
        ("tests/unit/engines/test_checksums.py::test_a_row_s_hash_is_also_over_which_columns_are_null",),
    ),
    Plant(
        "the digits after the point are added up over all rows, filter or not",
        "engines/spark/measure/exact_sums.py",
        'total = f"{total} + SUM({rest}){condition}"',
        'total = f"{total} + SUM({rest})"',
        ("tests/unit/engines/test_exact_sums.py::test_every_part_of_a_sum_has_its_filter",),
    ),
    Plant(
        "numbers of files count for a partition whose rows were deleted since",
        "gate/measured_files.py",
        " and not file.deletes",
        "",
        (f"{KNOWN}a_partition_that_anyone_wrote_since_is_measured_again",),
    ),
    Plant(
        "numbers of the prior are known by the name of their rule",
        "gate/measured_files.py",
        "by_sql = {sql: name for name, sql in measured.aggregates.items()}",
        "by_sql = {scan.aggregates.get(name, sql): name for name, sql in measured.aggregates.items()}",
        (f"{KNOWN}numbers_of_another_rule_are_not_taken_for_this_one",),
    ),
    Plant(
        "numbers of a column outlive it",
        "gate/measured_files.py",
        '"schema_id", ',
        "",
        (f"{KNOWN}under_another_schema_the_prior_is_measured_again",),
    ),
    Plant(
        "the oldest of values is the first of their directories",
        "engines/files/pattern.py",
        "_GLOB.search(before + after) or not grain.is_time:",
        "_GLOB.search(before + after):",
        ("tests/unit/engines/test_files.py::test_values_have_no_oldest_directory",),
    ),
    Plant(
        "values are put in the order of their names",
        "model/partition_sql.py",
        "sorted(partitions, key=lambda text: value_from_text(text) or \"\")",
        "sorted(partitions)",
        ("tests/spark/test_columns.py::test_values_whose_text_is_quoted_are_found_among_many_others",),
    ),
    # ----------------------------------------------------------------------------------------------------------- gaps
    Plant(
        "a commit with a copied property is no gap",
        "live_writers/foreign_commits.py",
        "name in published and published[name] in (None, commit.snapshot_id)",
        "name in published",
        (f"{GAPS}a_commit_that_only_claims_to_be_a_publication_is_foreign",),
    ),
    Plant(
        "an older attestation closes a newer gap",
        "live_writers/foreign_commits.py",
        "age.get(one.snapshot_id, len(line)) <= age[commit.snapshot_id]]",
        "one.snapshot_id in age]",
        (f"{GAPS}an_answer_holds_for_commits_up_to_its_snapshot",),
    ),
    # ------------------------------------------------------------------------------------------------------ campaigns
    Plant(
        "a signature over a campaign covers members whose own rule it does not meet",
        "ledger/store/campaign_members.py",
        "            if not status.is_met:\n",
        "            if not status.counted:\n",
        (f"{CAMPAIGNS}each_member_needs_the_approvals_of_its_own_product",),
    ),
    Plant(
        "the ledger approves a manifest that it did not derive",
        "ledger/store/campaign_members.py",
        "    if derived != digest:\n",
        "    if not derived:\n",
        (f"{CAMPAIGNS}the_ledger_approves_only_what_it_derives_itself",),
    ),
    Plant(
        "what a member was derived from is exchanged before it is published",
        "ledger/store/campaign_members.py",
        "    if derived != run.manifest_digest:\n",
        "    if not derived:\n",
        (f"{CAMPAIGNS}publish_derives_the_manifest_of_a_member_again",),
    ),
    Plant(
        "a live write to the scope after the approval is not drift",
        "model/campaign/derivation.py",
        '    changed = _find_changed(target["fingerprints"], now["fingerprints"],',
        '    changed = _find_changed(now["fingerprints"], now["fingerprints"],',
        (f"{CAMPAIGNS}a_live_write_into_the_scope_after_the_approval_needs_a_new_one",),
    ),
    Plant(
        "a child reads partitions of its parent that nobody approved",
        "model/campaign/derivation.py",
        '_find_changed(read["fingerprints"], now["fingerprints"], compacted)',
        '_find_changed(now["fingerprints"], now["fingerprints"], compacted)',
        (f"{CAMPAIGNS}a_partition_that_a_member_reads_and_no_member_wrote_must_be_as_sealed",),
    ),
    Plant(
        "a child reads what a live job put in the place of its parent's output",
        "model/campaign/derivation.py",
        "if one not in compacted and not _is_published(",
        "if not one and not _is_published(",
        (f"{CAMPAIGNS}a_partition_that_was_written_after_its_member_published_it_is_drift",),
    ),
    Plant(
        "an input outside the campaign may change unseen",
        "model/campaign/derivation.py",
        'if name in apart or pin.get("own") or name in member["live_inputs"]:',
        'if name in apart or pin.get("own") or True:',
        (f"{CAMPAIGNS}an_input_outside_the_campaign_must_be_as_sealed_unless_its_product_says_otherwise",),
    ),
    Plant(
        "compaction asks for a new approval",
        "commands/campaign/seal.py",
        "    for name in verdict.compacted:\n",
        "    for name in ():\n",
        (f"{CAMPAIGNS}compaction_of_the_scope_or_of_an_input_is_no_drift",),
    ),
    Plant(
        "a child is published although its parent was rolled back",
        "ledger/store/campaign_members.py",
        "    if withdrawn:\n",
        "    if withdrawn is None:\n",
        (f"{CAMPAIGNS}a_child_is_not_published_after_its_parent_was_rolled_back",),
    ),
    Plant(
        "a parent is rolled back while its child is being published",
        "ledger/store/campaign_members.py",
        "        if open_ones:\n",
        "        if open_ones is None:\n",
        (f"{CAMPAIGNS}a_parent_is_not_rolled_back_while_its_child_is_being_published",),
    ),
    Plant(
        "a release outlives the rollback of what it is about",
        "approval/release.py",
        'int(value["seq"]) > row.audit_seq',
        'int(value["seq"]) < row.audit_seq',
        (f"{CAMPAIGNS}a_child_is_not_published_after_its_parent_was_rolled_back",),
    ),
    Plant(
        "a rejected member does not stop those that read it",
        "commands/campaign/member_state.py",
        "if before[one].state in _ENDED]",
        "if before[one].state in OUT]",
        (f"{CAMPAIGNS}descendants_of_a_rejected_member_are_stopped",
         f"{CAMPAIGNS}a_campaign_corrects_all_tables_in_order_and_rolls_them_back"),
    ),
    Plant(
        "an input that cannot be read as approved is no drift on record",
        "commands/campaign/seal.py",
        "    workspace.ledger.audit.note(record.campaign_id, actor, DRIFTED, body)\n",
        "    if drift:\n        workspace.ledger.audit.note(record.campaign_id, actor, DRIFTED, body)\n",
        (f"{CAMPAIGNS}an_input_that_can_no_longer_be_read_as_approved_is_drift",),
    ),
    Plant(
        "a campaign is rolled back while one of its members is being published",
        "commands/campaign/rollback.py",
        "    if busy := workspace.ledger.publications.list_open(run_id=run.run_id):\n",
        "    if busy := ():\n",
        (f"{CAMPAIGNS}nothing_is_undone_while_a_member_is_being_published",),
    ),
    Plant(
        "a member that was corrected in its place is computed a second time",
        "approval/reservations.py",
        "            if is_open if run is None else run.state not in WITHOUT_RESULT:\n",
        "            if is_open:\n",
        (f"{CAMPAIGNS}a_member_that_was_corrected_in_its_place_stays_superseded",),
    ),
    Plant(
        "a publication of the same run by another process is called a conflict",
        "commands/publish/publish.py",
        "        if all(states[name] is not PartitionState.UNPUBLISHED for name in scope):\n",
        "        if not scope:\n",
        ("tests/protocol/test_conflicts.py::test_another_process_that_publishes_the_same_run_is_no_conflict",),
    ),
    Plant(
        "a campaign is rolled back by half",
        "commands/campaign/rollback.py",
        "    if stuck:\n",
        "    if len(stuck) == len(looks):\n",
        (f"{CAMPAIGNS}nothing_is_undone_while_a_member_cannot_go_back",),
    ),
    Plant(
        "reserved partitions are free for others",
        "approval/reservations.py",
        "or not evaluate_member(workspace, record, member).is_met:",
        "or evaluate_member(workspace, record, member).is_met:",
        (f"{CAMPAIGNS}an_approved_campaign_reserves_the_partitions_of_its_members",),
    ),
    Plant(
        "an auditor is not told that a member does not follow from its campaign",
        "evidence/verifier.py",
        "        self.need(derived == self.manifest, MANIFEST,",
        "        self.need(bool(derived), MANIFEST,",
        (f"{PROVED}a_member_that_does_not_follow_from_its_campaign_is_noticed",),
    ),
    Plant(
        "dbt builds what nobody approved",
        "commands/campaign/dbt_steps.py",
        "    if changed:\n",
        "    if changed is None:\n",
        (f"{DBT}a_project_of_dbt_that_changed_since_the_approval_stops_its_step",),
    ),
    # ----------------------------------------------------------------------------------------------------- kept diffs
    Plant(
        "an edited diff is believed",
        "gate/diff/kept_diff.py",
        ".get(self._note(content)) != _describe(content):",
        ".get(self._note(content)) == {}:",
        ("tests/protocol/test_kept_diffs.py::test_an_edited_diff_is_not_believed",),
    ),
    Plant(
        "rows are kept although their subjects can be erased",
        "gate/diff/kept_diff.py",
        "return bool(found) and not any(found)",
        "return bool(found)",
        ("tests/protocol/test_kept_diffs.py::test_nothing_is_kept_where_subjects_can_be_erased",),
    ),
    *IN_COPIES,
    *IN_ICEBERG,
    *IN_LINEAGE, *IN_MESSAGES,
    *IN_HOLDS,
    *IN_MONITORING,
    *IN_OUTBOX,
    *IN_SNOWFLAKE,
    *IN_STALENESS,
    *IN_STREAMS,
    *IN_LANES,
    *IN_SUBMISSIONS,
    *IN_RECORDINGS,
    *IN_TOPICS,
    *IN_PRIVACY,
    *IN_RECONSTRUCTION,
    *IN_CHANGE_LOGS,
)  # fmt: skip
