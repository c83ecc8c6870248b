"""Bugs to plant in copies and their delivery to PostgreSQL; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

CONTRACT = "tests/contract/test_on_servers.py::TestPostgresCopies::test_"
RACES = "tests/copies/test_races.py::test_"
LOST = "tests/copies/test_lost_answers.py::test_"
PROOF = "tests/protocol/test_copy_evidence.py::test_"
VERIFIER = "evidence/verifier.py"
OWED = "tests/protocol/test_copies.py::test_"
FITS = "tests/unit/model/copy/test_resolution.py::test_"
COMPARED = "tests/protocol/test_copies_check.py::test_"
REPAIRED = "tests/protocol/test_copy_repairs.py::test_"
CHECKS = "tests/copies/test_checks.py::test_"
ACCIDENTS = "tests/copies/test_accidents.py::test_"
LAKE_ROWS = "tests/unit/engines/copies/test_lake_rows.py::test_"
FILES = "tests/unit/engines/copies/test_file_batches.py::test_"
ICEBERG = "tests/copies/test_kill_copies.py::test_"
STATEMENTS = "engines/copies/postgres_statements.py"
ENGINE = "engines/copies/postgres_copies.py"
DELIVERY = "delivery/copies/copy_delivery.py"

OWN = "tests/copies/test_own_hashes.py::test_"
EDITED = f"{OWN}an_edit_that_keeps_the_number_of_rows_is_found_under_the_lock"

IN_COPIES = (
    # ----------------------------------------------------------------------------------------- the warehouse's own hash
    Plant(
        "rows are recognised by their number",
        "model/copy/checksum.py",
        "(one.rows, one.own_hash) != (same.rows, same.own_hash)",
        "one.rows != same.rows",
        (f"{EDITED}[the last cent of one row]",),
    ),
    Plant(
        "the own hash is that of hash tables",
        STATEMENTS,
        "hash_record_extended(row(record_send(row({', '.join(values)}))), 0)",
        "hash_record_extended(row({', '.join(values)}), 0)",
        (f"{EDITED}[the sign of an amount]", f"{EDITED}[a number that lost its sign]"),
    ),
    Plant(
        "an own hash that is not recognised counts as a change",
        ENGINE,
        "            if recognised is not None:\n                return recognised\n",
        "            return recognised or {}\n",
        (f"{OWN}without_a_usable_own_hash_the_common_hash_decides[same-another server version]",),
    ),
    # ----------------------------------------------------------------------------------------- who may replace rows
    Plant(
        "a fenced swap lands all the same",
        STATEMENTS,
        "WHERE publication = %s AND attempt = %s AND state = 'open'\"\"\"",
        "WHERE publication = %s AND attempt = %s\"\"\"",
        (f"{CONTRACT}without_an_open_marker_nothing_is_written",),
    ),
    Plant(
        "a swap does not look at its marker",
        ENGINE,
        "            raise refuse_lost(marker)\n\n    def end_marker(",
        "            pass\n\n    def end_marker(",
        (f"{CONTRACT}without_an_open_marker_nothing_is_written",),
    ),
    Plant(
        "a fence that times out concludes that nothing landed",
        "engines/copies/postgres_session.py",
        '            conn.execute("ROLLBACK")\n            _raise_locked(',
        '            conn.execute("ROLLBACK")\n            return\n            _raise_locked(',
        (f"{CONTRACT}a_fence_that_has_to_wait_too_long_concludes_nothing",),
    ),
    Plant(
        "a lost answer counts as not landed",
        DELIVERY,
        "            if self.copies.fence(self.copy, swap.marker) is MarkerState.VOID:\n",
        "            if self.copies is not None:\n",
        (f"{OWED}a_lost_answer_to_a_commit_is_looked_up_in_the_marker",),
    ),
    Plant(
        "earlier attempts are not ended before the next one loads",
        DELIVERY,
        "                state = self.copies.fence(self.copy, found.marker) if is_open else found.state\n",
        "                state = found.state\n",
        (f"{OWED}an_outcome_that_nobody_knows_is_not_guessed",),
    ),
    Plant(
        "an older attempt opens its marker after a later one",
        ENGINE,
        "                if later or session.read_marker(marker) is not MarkerState.OPEN:\n",
        "                if session.read_marker(marker) is MarkerState.VOID:\n",
        (f"{CONTRACT}an_older_attempt_cannot_open_its_marker", f"{RACES}a_zombie_loader_adds_nothing_to_the_copy"),
    ),
    # ------------------------------------------------------------------------------------------------ other writers
    Plant(
        "other writers of a copy are not kept out of the swap",
        STATEMENTS,
        'LOCK = "LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE"',
        'LOCK = "LOCK TABLE {target} IN ACCESS SHARE MODE"',
        (f"{RACES}a_writer_in_the_scope_waits_for_the_swap_and_is_not_lost",),
    ),
    Plant(
        "readers are kept out while a copy is replaced",
        STATEMENTS,
        'LOCK = "LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE"',
        'LOCK = "LOCK TABLE {target} IN ACCESS EXCLUSIVE MODE"',
        (f"{RACES}readers_are_not_kept_waiting",),
    ),
    Plant(
        "rows of somebody else are replaced in silence",
        ENGINE,
        "            session.require_rows(swap.expected)\n",
        "",
        (f"{CONTRACT}rows_of_someone_else_are_a_conflict",),
    ),
    Plant(
        "a delivery in between is called a foreign change",
        ENGINE,
        "            if lowered or recorded != {",
        "            if lowered and recorded != {",
        (f"{CONTRACT}a_delivery_in_between_is_no_foreign_change",),
    ),
    # ------------------------------------------------------------------------------------------ rows that are there
    Plant(
        "rows that were loaded are not compared with the lake",
        DELIVERY,
        "        if differing := find_differing(measured, found, self.copy.tolerance):\n",
        "        if differing := find_differing(measured, measured, self.copy.tolerance):\n",
        (f"{OWED}rows_that_are_lost_on_the_way_are_noticed_before_anything_is_locked",),
    ),
    Plant(
        "hashes depend on how a database writes dates",
        "engines/copies/postgres_session.py",
        "            conn.execute(\"SET DateStyle = 'ISO'\")\n",
        "",
        (f"{ACCIDENTS}settings_of_the_database_change_no_row_and_no_hash",),
    ),
    Plant(
        "rows that reached the copy are not counted",
        ENGINE,
        '            _require_count(copy, "inserted", written, swap.rows)\n',
        "",
        (f"{RACES}rows_that_reach_staging_after_its_check_are_found",),
    ),
    Plant(
        "rows that reached the copy are not compared with the lake",
        ENGINE,
        "            if differing := find_differing(wanted, found, copy.tolerance):\n",
        "            if differing := find_differing(wanted, wanted, copy.tolerance):\n",
        (f"{CONTRACT}staging_with_other_rows_than_the_lake_is_refused",),
    ),
    Plant(
        "an error inside the swap commits what it has done",
        "engines/copies/postgres_session.py",
        '        if not conn.closed:\n            conn.execute("ROLLBACK")\n        raise\n',
        '        if not conn.closed:\n            conn.execute("COMMIT")\n        raise\n',
        (f"{CONTRACT}staging_with_other_rows_than_the_lake_is_refused",),
    ),
    Plant(
        "staging of another attempt is loaded into",
        STATEMENTS,
        'CREATE_STAGING = "CREATE UNLOGGED TABLE {staging} ({types})"',
        'CREATE_STAGING = "CREATE UNLOGGED TABLE IF NOT EXISTS {staging} ({types})"',
        (f"{CONTRACT}staging_is_never_loaded_twice",),
    ),
    Plant(
        "every attempt has the same staging table",
        "model/copy/table.py",
        '    return f"{name_staging_prefix(copy, publication)}{attempt}"\n',
        "    return name_staging_prefix(copy, publication)\n",
        (f"{RACES}a_zombie_loader_adds_nothing_to_the_copy",),
    ),
    Plant(
        "columns are read from the lake by the name that they had then",
        "engines/iceberg/metadata/lake_rows.py",
        "        projected = self.table.schema().select(*sources)\n",
        "        projected = self.table.scan(snapshot_id=self.snapshot_id).projection().select(*sources)\n",
        (f"{ICEBERG}a_column_that_was_renamed_since_is_copied_by_its_field",),
    ),
    Plant(
        "a batch has the types that the writer of its file chose",
        "engines/iceberg/metadata/lake_rows.py",
        ".rename_columns(schema.names).cast(schema)\n",
        ".rename_columns(schema.names)\n",
        (f"{LAKE_ROWS}all_batches_have_one_schema",),
    ),
    Plant(
        "a cancelled repair gives up deliveries of publications as well",
        "commands/compute/repair.py",
        "workspace.ledger.outbox.waive(item.item_id, why, actor, alone=True)\n",
        "workspace.ledger.outbox.waive(item.item_id, why, actor)\n",
        (f"{REPAIRED}a_cancellation_gives_up_no_delivery",),
    ),
    Plant(
        "a copy that was accepted with other rows is said to have moved on in the lake",
        "model/copy/partition_comparison.py",
        "Comparison.MOVED_ON if sequence is not None else Comparison.BASELINE\n",
        "Comparison.MOVED_ON\n",
        (f"{COMPARED}what_only_a_baseline_covers_has_not_moved_on_in_the_lake",),
    ),
    Plant(
        "a data file is decoded as a whole",
        "engines/iceberg/metadata/file_batches.py",
        "    if task.delete_files or task.file.file_format != FileFormat.PARQUET:\n",
        "    if task.file.file_format == FileFormat.PARQUET:\n",
        (f"{FILES}memory_does_not_grow_with_the_file[1]",),
    ),
    Plant(
        "a copy gets what live jobs have written since",
        "testing/copies/lake_rows.py",
        "        snapshot = metadata.snapshots.get(snapshot_id)\n",
        "        snapshot = metadata.head if snapshot_id in metadata.snapshots else None\n",
        (f"{OWED}live_rows_after_the_publication_are_left_to_the_live_job",),
    ),
    # ---------------------------------------------------------------------------------------------- state, not events
    Plant(
        "a late delivery brings back what was rolled back",
        "model/copy/marker.py",
        "        if name in delivered and content.sequence < delivered[name].content.sequence\n",
        "        if name in delivered and content.sequence < 0\n",
        (f"{CONTRACT}no_partition_goes_back_to_an_older_acceptance",),
    ),
    Plant(
        "a copy gets the publication that it is owed because of",
        "delivery/copies/accepted_rows.py",
        "    rows = workspace.ledger.partitions.accepted(table, partitions)\n",
        "    rows = {name: workspace.ledger.partitions.history(table, name)[0] for name in partitions}\n",
        (f"{OWED}a_rolled_back_publication_never_reaches_the_copy",),
    ),
    Plant(
        "every item of a copy is delivered, one after the other",
        "model/consumer/outbox.py",
        "        return self in (Effect.VIEW, Effect.READY, Effect.RECOVER, Effect.COPY)\n",
        "        return self in (Effect.VIEW, Effect.READY, Effect.RECOVER)\n",
        (f"{OWED}a_rolled_back_publication_never_reaches_the_copy",),
    ),
    Plant(
        "what was staged is shown although it is no longer accepted",
        DELIVERY,
        "        now = read_acceptance(self.workspace, self.item.table, swap.contents)\n",
        "        now = {name: accepted[name] for name in swap.contents}\n",
        (f"{OWED}what_is_accepted_while_rows_are_loaded_is_what_is_delivered",),
    ),
    Plant(
        "a copy without a baseline is overwritten",
        "model/copy/marker.py",
        "    return {name: delivered[name].content.checksum if name in delivered else EMPTY for name in partitions}\n",
        "    return {name: delivered[name].content.checksum for name in partitions if name in delivered}\n",
        ("tests/unit/model/copy/test_marker.py::test_a_partition_that_was_never_delivered_is_expected_to_be_empty",),
    ),
    Plant(
        "a copy is compared over other columns than it was delivered with",
        DELIVERY,
        "delivered[name].shape != self.copy.shape",
        "not delivered[name].shape",
        (f"{OWED}a_copy_with_other_columns_than_at_its_last_delivery_is_not_compared",),
    ),
    # ------------------------------------------------------------------------------------------- checks and repairs
    Plant(
        "what live jobs wrote in the lake counts as a difference",
        "model/copy/partition_comparison.py",
        "            return Comparison.MOVED_ON if sequence is not None else Comparison.BASELINE\n",
        "            return Comparison.CHANGED\n",
        (f"{COMPARED}what_live_jobs_wrote_in_the_lake_has_moved_on",),
    ),
    Plant(
        "a copy that was waived counts as moved on",
        "model/copy/partition_comparison.py",
        "known.content.sequence < (sequence or 0)",
        "known.content.sequence < 0",
        (f"{COMPARED}a_copy_that_is_behind_differs",),
    ),
    Plant(
        "a delivery during a check counts as a difference",
        "delivery/copies/lake_comparison.py",
        "Comparison.MOVED_ON if name in overtaken else measured.compare(name)",
        "measured.compare(name)",
        (f"{COMPARED}a_delivery_during_the_check_is_no_mismatch",),
    ),
    Plant(
        "a repair replaces whatever the copy holds by then",
        DELIVERY,
        "expected={name: one.found for name, one in sealed.items()}",
        "expected=self.copies.measure(self.copy, sealed)",
        (f"{REPAIRED}a_change_after_the_plan_is_a_conflict",),
    ),
    Plant(
        "a repair brings back what was accepted when it was planned",
        DELIVERY,
        "        if changed := moved or find_delivered_since(sealed, delivered):\n",
        "        if changed := find_delivered_since(sealed, delivered) and ():\n",
        (f"{REPAIRED}what_was_published_after_the_plan_is_not_undone",),
    ),
    Plant(
        "a repair that was cancelled is still made",
        DELIVERY,
        "        if run.state is not RunState.RUNNING:\n",
        "        if run.state is RunState.PLANNED:\n",
        (f"{REPAIRED}a_repair_that_was_cancelled_is_not_made",),
    ),
    # ------------------------------------------------------------------------------------------------------ the rest
    Plant(
        "rows that a copy is owed are cleaned up",
        "publishing/leftovers.py",
        "        landed = [] if publication.pub_id in owing else [fence]\n",
        "        landed = [fence]\n",
        (f"{OWED}rows_that_are_owed_outlive_expiry",),
    ),
    Plant(
        "rows that a copy is owed are kept for a week only",
        "commands/publish/rollback.py",
        "        pub_days=count_kept_days(context.workspace, context.manifest.product),\n",
        "",
        (f"{OWED}the_tag_of_a_publication_lives_as_long_as_its_copies_ask[14d-14]",),
    ),
    Plant(
        "a missing driver uses up attempts",
        "delivery/payment.py",
        "        except (MissingCredentials, MissingDriver) as missing:\n",
        "        except MissingCredentials as missing:\n",
        (f"{OWED}a_missing_driver_leaves_the_item_as_it_was",),
    ),
    Plant(
        "a copy that was given up counts as delivered",
        "model/copy/delivered_state.py",
        "    RecoveryState.WAIVED: DeliveredState.WAIVED,\n",
        "    RecoveryState.WAIVED: DeliveredState.YES,\n",
        (f"{OWED}a_copy_that_is_given_up_is_not_delivered",),
    ),
    Plant(
        "a column that gets no value is filled with NULL",
        "model/copy/resolution.py",
        "        if column.name not in used and column.name not in declared.default and not column.is_generated:\n",
        "        if column.name not in used and column.is_required:\n",
        (f"{FITS}what_cannot_be_copied_is_refused_by_name",),
    ),
    Plant(
        "doubles are compared without a limit",
        "model/copy/resolution.py",
        "    if doubles and declared.tolerance is None:\n",
        "    if doubles and declared.tolerance == \"\":\n",
        (f"{FITS}doubles_need_a_tolerance",),
    ),
    Plant(
        "a trigger on a copy is not named",
        "engines/copies/postgres_description.py",
        'AND NOT tgisinternal",\n',
        'AND tgisinternal",\n',
        (f"{CHECKS}everything_that_is_wrong_is_found_in_one_pass",),
    ),
    # -------------------------------------------------------------------------------------------------- what proves it
    Plant(
        "a receipt repeats the lake's checksum instead of what was read back",
        "delivery/copies/copy_delivery.py",
        "        read_back = self.measure(accepted, {**_list_contents(delivered), **receipt.partitions})\n",
        "        read_back = {name: one.checksum for name, one in receipt.partitions.items()}\n",
        (f"{PROOF}rows_that_others_write_after_the_swap_are_in_the_receipt",),
    ),
    Plant(
        "fenced attempts are in no receipt",
        "delivery/copies/copy_delivery.py",
        "                self.attempts[found.marker.attempt] = state\n",
        "                del state\n",
        (f"{PROOF}a_fenced_attempt_is_in_the_receipt_of_the_next_one",),
    ),
    Plant(
        "the verifier does not compare the sides of a receipt",
        VERIFIER,
        '            same = step not in one or is_like(one, one[step], result.get("tolerance"))\n',
        "            same = True\n",
        (f"{PROOF}a_receipt_that_does_not_agree_with_itself_is_found",),
    ),
    Plant(
        "the verifier does not compare a receipt with the gate's count",
        VERIFIER,
        '            same = all(value == str(one["rows"]) for value in counted)\n',
        "            same = True\n",
        (f"{PROOF}a_receipt_that_does_not_agree_with_itself_is_found",),
    ),
    Plant(
        "a copy that was given up counts as delivered in the report",
        "model/copy/summary.py",
        "if one.state is not ItemState.PAID]\n",
        "if one.state is ItemState.OWED]\n",
        (f"{PROOF}the_report_says_what_is_not_there_and_who_gave_it_up",),
    ),
)  # fmt: skip
