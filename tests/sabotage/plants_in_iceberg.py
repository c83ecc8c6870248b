"""Bugs to plant in what talks to Iceberg: commits, lists of files, refs, candidates, publications."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_ICEBERG"]

TABLE = "tests/spark/test_table_metadata.py::test_"
PUBLICATION = "tests/spark/test_publication_metadata.py::test_"
RULES = "tests/spark/test_table_rules.py::test_"
STATEMENTS = "tests/unit/engines/test_side_table_statements.py::test_"
REFS = "tests/unit/engines/test_iceberg_refs.py::test_"
PINS = "tests/unit/engines/test_iceberg_tags.py::test_"
METADATA = "tests/unit/engines/test_iceberg_metadata.py::test_"
HISTORY = "tests/unit/engines/test_iceberg_history.py::test_"
SHADOW = "tests/unit/engines/test_iceberg_shadow.py::test_"
COMMIT_JAVA, FILES_JAVA = "engines/iceberg/commits/ErrataCommit.java", "engines/iceberg/commits/ErrataFiles.java"
JAVA, REFS_PY, PUBLISHED = (
    "engines/iceberg/commits/java.py",
    "engines/iceberg/commits/refs.py",
    "engines/iceberg/commits/publish.py",
)
STAGED, BESIDE, PINS_PY = (
    "engines/iceberg/commits/staging.py",
    "engines/iceberg/commits/side_tables.py",
    "engines/iceberg/metadata/tags.py",
)
SCATTERED = f"{TABLE}files_are_listed_by_partition_however_many_and_scattered_the_partitions_are"
GUARD = f"{TABLE}the_guard_is_an_empty_root_and_main_stays"
BRANCH = f"{TABLE}a_branch_holds_what_is_written_to_it_and_an_expiry_keeps_every_snapshot_of_it"
GLOBAL = f"{TABLE}a_global_delete_hits_every_partition_unless_the_day_is_among_its_columns"
CANDIDATE = f"{PUBLICATION}a_candidate_is_main_with_the_days_exchanged"
UNDO = f"{PUBLICATION}an_undo_branch_holds_the_last_set_alone_for_its_days"
FENCE = f"{PUBLICATION}behind_its_fence_a_publication_cannot_land"
TAGS = f"{PUBLICATION}a_publication_is_kept_by_two_tags_and_with_statistics"
UNREADABLE = f"{PUBLICATION}what_cannot_be_opened_is_not_called_published"


IN_ICEBERG = (
    # ------------------------------------------------------------------------------------------------------ one swap
    Plant(
        "Iceberg tries again by itself",
        COMMIT_JAVA,
        "    transaction.underlyingOps().commit(transaction.startMetadata(), result);\n",
        "    transaction.commitTransaction();\n",
        (f"{TABLE}a_commit_is_one_swap_of_the_version_that_it_was_begun_on",),
    ),
    Plant(
        "a commit takes the place of whatever came before it",
        COMMIT_JAVA,
        "    transaction.underlyingOps().commit(transaction.startMetadata(), result);\n",
        "    transaction.underlyingOps().commit(transaction.underlyingOps().refresh(), result);\n",
        (f"{TABLE}a_commit_is_one_swap_of_the_version_that_it_was_begun_on",),
    ),
    Plant(
        "an answer that says nothing is the end",
        REFS_PY,
        "_mentions_any(error, *_LOST_RACE, *_NO_CLEAR_ANSWER), tries",
        "_mentions_any(error, *_LOST_RACE), tries",
        (f"{REFS}an_act_is_repeated_until_the_catalog_answers_clearly",),
    ),
    # ------------------------------------------------------------------------------------------------ lists of files
    Plant(
        "files of partitions that nobody asked for are listed",
        JAVA,
        '        wanted = "\\n".join(_to_raw_value(target, name) for name in partitions)\n',
        '        wanted = ""\n',
        (SCATTERED,),
    ),
    Plant(
        "the last of many ranges is dropped",
        JAVA,
        "    for n in range(0, len(ranges), size):\n",
        "    for n in range(0, len(ranges) - size + 1, size):\n",
        (SCATTERED,),
    ),
    Plant(
        "joined ranges end where their first one ends",
        JAVA,
        "str(group[-1][2])",
        "str(group[0][2])",
        (SCATTERED,),
    ),
    Plant(
        "half of a scope is left out",
        FILES_JAVA,
        "    return Expressions.or(either(parts, first, middle), either(parts, middle, end));\n",
        "    return either(parts, first, middle);\n",
        (SCATTERED,),
    ),
    Plant(
        "the NULL partition is not in the scope",
        JAVA,
        ', *(["n"] if NULL in partitions else [])',
        "",
        (f"{TABLE}null_is_a_partition_like_others",),
    ),
    Plant(
        "an hour ends with its first microsecond",
        JAVA,
        "end // divided * times - 1)",
        "low // divided * times)",
        (f"{TABLE}an_hour_reaches_from_its_first_microsecond_to_its_last[59]",),
    ),
    Plant(
        "a newline in a path is written as it is",
        FILES_JAVA,
        '        out.append("\\\\n");\n',
        "        out.append(sign);\n",
        (f"{TABLE}a_path_may_hold_what_separates_records",),
    ),
    Plant(
        "statistics of added files are lost",
        FILES_JAVA,
        "tasks(holder, snapshotId, scope, paths, null).iterator()",
        "tasks(holder, snapshotId, scope, paths, Collections.emptySet()).iterator()",
        (TAGS,),
    ),
    Plant(
        "files of a shadow that the target reads are deleted",
        FILES_JAVA,
        "    unused.removeAll(used);\n",
        "",
        (f"{PUBLICATION}of_a_shadow_s_files_those_that_the_target_reads_stay",),
    ),
    # ------------------------------------------------------------------------------------------------------- history
    Plant(
        "history ends with the newest commit",
        PUBLISHED,
        '            current = row[1] if row[1] != "\\x00" else None\n',
        "            current = None\n",
        (f"{TABLE}history_goes_back_to_the_base_commit_by_commit",),
    ),
    Plant(
        "a delete file of no partition touches none",
        PUBLISHED,
        "everything = everything or bool(parse_span(self._target, raw).filter_possible(partitions))",
        "everything = everything or False",
        (GLOBAL,),
    ),
    Plant(
        "what a commit deleted is not told",
        FILES_JAVA,
        '    changes(out, "+", table, snapshot.addedDeleteFiles(table.io()), sourceId, transform);\n',
        "",
        (GLOBAL,),
    ),
    Plant(
        "bounds of a delete file tell nothing",
        FILES_JAVA,
        "        || (file.content() == FileContent.EQUALITY_DELETES && file.equalityFieldIds().contains(id));\n",
        "        ;\n",
        (GLOBAL,),
    ),
    Plant(
        "bounds of any column of a delete file are believed",
        FILES_JAVA,
        " && file.equalityFieldIds().contains(id));\n",
        ");\n",
        (GLOBAL,),
    ),
    Plant(
        "where history was cut no delete file is new",
        FILES_JAVA,
        "      if (manifest.sequenceNumber() <= after) {\n",
        "      if (true) {\n",
        (f"{TABLE}deletes_are_told_by_age_where_history_does_not_reach_the_base",),
    ),
    Plant(
        "where history was cut every delete file is new",
        FILES_JAVA,
        "      laterDeletes(out, table, head, sequenceNumber(table, ids), sourceId, transform);\n",
        "      laterDeletes(out, table, head, -1L, sourceId, transform);\n",
        (f"{TABLE}deletes_are_told_by_age_where_history_does_not_reach_the_base",),
    ),
    Plant(
        "a file that does not count its NULLs has none",
        "engines/iceberg/metadata/bounds.py",
        "has_null=nulls != 0)",
        "has_null=bool(nulls))",
        (f"{METADATA}a_file_that_does_not_count_its_nulls_may_hold_rows_without_a_value",),
    ),
    Plant(
        "a restore takes the default value of a newer column away",
        "engines/iceberg/metadata/history.py",
        '            getattr(field, "initial_default", None) is not None,\n',
        "            False,\n",
        (f"{HISTORY}a_column_that_was_added_with_a_default_value_cannot_be_put_back",),
    ),
    Plant(
        "the oldest of values is the first of their texts",
        "engines/iceberg/metadata/data_files.py",
        "        if self._is_time and key != NULL",
        "        if key != NULL",
        ("tests/unit/engines/test_iceberg_metadata.py::test_values_have_no_oldest_partition",),
    ),
    Plant(
        "main is said to have left a snapshot that has only expired",
        "engines/iceberg/metadata/history.py",
        "    is_sure = begins or (",
        "    is_sure = True or (",
        (f"{HISTORY}a_snapshot_that_may_only_have_expired_was_not_surely_left",),
    ),
    Plant(
        "a missing parent is taken for the beginning of a table",
        "model/table.py",
        "    if parent_id is not None:\n        return False",
        "    return parent_id is None",
        (f"{HISTORY}a_history_that_pyiceberg_cut_has_no_known_beginning",),
    ),
    Plant(
        "lists of files stay in the JVM",
        "engines/iceberg/commits/java.py",
        "        rows = parse_rows(self.bulk.live(",
        "        self.bulk.paths(table)\n        rows = parse_rows(self.bulk.live(",
        ("tests/spark/test_publication_metadata.py::test_a_publication_leaves_no_list_of_files_in_the_jvm",),
    ),
    Plant(
        "rewrites without the write before them are taken for compaction",
        "publishing/conflict.py",
        "_count_rows(expected, name) == _count_rows(live, name) and ",
        "",
        ("tests/unit/publishing/test_conflict.py::test_rewrites_that_would_have_changed_the_number_of_rows_prove_nothing",),
    ),
    Plant(
        "early notice overlooks delete files that apply to no live file",
        "publishing/live_writes.py",
        "    return verdict.mark_written(deleted)",
        "    return verdict",
        ("tests/spark/test_live_writes.py::test_a_delete_file_that_applies_to_no_live_file_is_noticed_early",),
    ),
    Plant(
        "where history was cut main is never sure to have left a snapshot",
        "engines/iceberg/metadata/history.py",
        "(known is not None and oldest is not None and known.timestamp_ms > oldest.timestamp_ms)",
        "False",
        (f"{HISTORY}a_snapshot_newer_than_the_cut_of_history_was_surely_left",),
    ),
    # ----------------------------------------------------------------------------------------------- guard and branches
    Plant(
        "the guard leads back to main",
        COMMIT_JAVA,
        "      forget(parent.longValue());\n",
        "",
        (GUARD,),
    ),
    Plant(
        "the guard lists what was deleted to make it",
        COMMIT_JAVA,
        "    start(transaction.newAppend(), name);\n",
        "    start(transaction.newFastAppend(), name);\n",
        (GUARD,),
    ),
    Plant(
        "the guard holds everything that main holds",
        COMMIT_JAVA,
        "    if (table.currentSnapshot() != null) {\n",
        "    if (false) {\n",
        (GUARD,),
    ),
    Plant(
        "any branch of that name is the guard",
        REFS_PY,
        "    return head is None or count_manifests(table, head) != 0\n",
        "    return head is None\n",
        (f"{TABLE}a_guard_that_lists_files_is_made_anew",),
    ),
    Plant(
        "a table without a snapshot stays without",
        REFS_PY,
        "        if main_head(commit.table()) is None:\n",
        "        if False:\n",
        (f"{TABLE}a_table_without_a_snapshot_gets_one_with_its_guard",),
    ),
    Plant(
        "a branch begins with all that main holds",
        REFS_PY,
        "            commit.createBranch(branch, int(guard))\n",
        "            commit.createBranch(branch, int(main_head(commit.table())))\n",
        (BRANCH,),
    ),
    Plant(
        "an expiry takes older snapshots of a branch",
        REFS_PY,
        "            commit.setSnapshotAge(branch, FOR_EVER_DAYS * DAY_MS)\n",
        "",
        (BRANCH,),
    ),
    Plant(
        "the guard's age is added to what a branch was promised",
        REFS_PY,
        "            commit.setAge(branch, days * DAY_MS)\n",
        "            commit.setAge(branch, compute_ref_age(commit.table(), guard, days))\n",
        (BRANCH,),
    ),
    Plant(
        "an append that landed is made again",
        REFS_PY,
        "            if found := find_marked_snapshots(java, table, *mark):\n",
        "            if found := ():\n",
        (f"{TABLE}one_mark_is_one_append",),
    ),
    Plant(
        "a branch that was dropped comes back from main",
        REFS_PY,
        "            if branch is not None and find_ref(table, branch) is None:\n",
        "            if False:\n",
        (f"{TABLE}nothing_is_appended_to_a_branch_that_is_gone",),
    ),
    Plant(
        "refs are said to be dropped and stay",
        REFS_PY,
        "                commit.swap()\n        return tuple(removed)\n",
        "        return tuple(removed)\n",
        (f"{TABLE}refs_are_dropped_in_one_commit_and_those_that_are_gone_are_left_out",),
    ),
    Plant(
        "a tag lives from its snapshot's time on",
        PINS_PY,
        "max_ref_age_ms=keep_ms + age).commit()\n            # some catalogs",
        "max_ref_age_ms=keep_ms).commit()\n            # some catalogs",
        (f"{PINS}a_pin_is_created_once_and_keeps_the_snapshot_as_long_as_promised",),
    ),
    Plant(
        "a tag that the catalog did not keep counts as made",
        PINS_PY,
        "            if tag not in self.refs(table):\n",
        "            if not tag:\n",
        (f"{PINS}a_tag_that_was_accepted_and_is_not_there_is_told_apart_from_no_permission",),
    ),
    # ---------------------------------------------------------------------------------------------------- candidates
    Plant(
        "a candidate keeps the rows that it replaces",
        STAGED,
        "[f.path for f in java.live(table, head, target, partitions) if f.partition is not None]",
        "[]",
        (CANDIDATE,),
    ),
    Plant(
        "a candidate is kept for ever",
        STAGED,
        "                commit.setAge(branch, keep_days * DAY_MS)\n",
        "",
        (CANDIDATE,),
    ),
    Plant(
        "whatever has its name is the candidate",
        STAGED,
        '        if summary.get("errata.candidate") != branch:\n',
        "        if False:\n",
        (f"{PUBLICATION}a_branch_that_has_a_candidate_s_name_is_not_yet_a_candidate",),
    ),
    Plant(
        "a candidate is made of the staged files that were found",
        STAGED,
        "        if removed != len(removing) or added != len(set(paths)):\n",
        "        if False:\n",
        (f"{PUBLICATION}a_candidate_of_what_is_not_staged_is_refused",),
    ),
    Plant(
        "of two appends under one fence the first is used",
        "model/table.py",
        "    if len(contents) > 1:\n",
        "    if False:\n",
        (
            f"{PUBLICATION}an_attempt_that_left_two_different_appends_is_void",
            "tests/unit/model/test_old_columns.py::test_a_repeated_commit_counts_once_and_two_outputs_not_at_all",
        ),
    ),
    Plant(
        "an expiry of the shadow takes files of the target",
        "engines/iceberg/commits/shadow.py",
        '{"gc.enabled": "false", "errata.run": run_id}',
        '{"errata.run": run_id}',
        (f"{SHADOW}no_expiry_and_no_purge_of_the_shadow_may_delete_data",),
    ),
    Plant(
        "chunks are written with a file open for each partition",
        "engines/spark/write/append.py",
        '{"fanout-enabled": "false", ',
        "{",
        (f"{RULES}chunks_are_written_in_order_of_their_partitions_and_not_with_a_file_open_for_each",),
    ),
    # -------------------------------------------------------------------------------------------------- publications
    Plant(
        "a publication does not look for the refs that it relies on",
        PUBLISHED,
        "            self._require_refs(publication)\n",
        "",
        (f"{PUBLICATION}a_publication_whose_refs_are_gone_is_refused",),
    ),
    Plant(
        "refs that a publication relies on are left as they are",
        PUBLISHED,
        "max((ref.maxRefAgeMs() or 0) + 1, needed)",
        "max(ref.maxRefAgeMs() or 0, needed)",
        (f"{PUBLICATION}a_publication_changes_every_ref_that_it_relies_on",),
    ),
    Plant(
        "main before a publication is kept from its own time on",
        PUBLISHED,
        "        commit.setAge(before, compute_ref_age(self._table, head, publication.pre_days))\n",
        "        commit.setAge(before, publication.pre_days * DAY_MS)\n",
        (TAGS,),
    ),
    Plant(
        "a publication takes out and puts in what it finds",
        PUBLISHED,
        "        if removed != len(publication.remove) or added != adding:\n",
        "        if False:\n",
        (f"{PUBLICATION}a_publication_that_does_not_balance_is_refused",),
    ),
    Plant(
        "new columns get any field ids",
        PUBLISHED,
        "        if wrong:\n",
        "        if False:\n",
        (f"{PUBLICATION}a_column_is_added_under_the_id_that_staged_files_carry_or_not_at_all",),
    ),
    Plant(
        "an undo branch keeps what an earlier try took out",
        PUBLISHED,
        "                commit.replaceBranch(branch, int(guard))\n",
        "                pass\n",
        (UNDO,),
    ),
    Plant(
        "an undo branch holds the files that were found",
        PUBLISHED,
        "join_paths(paths)) != len(paths):\n",
        "join_paths(paths)) < 0:\n",
        (UNDO,),
    ),
    Plant(
        "an undo branch outlives its window by the guard's age",
        PUBLISHED,
        "            commit.setAge(branch, days * DAY_MS)\n",
        "            commit.setAge(branch, compute_ref_age(table, guard, days))\n",
        (UNDO,),
    ),
    Plant(
        "a fence is not written",
        PUBLISHED,
        "                if find_ref(commit.table(), tag) is None:\n",
        "                if False:\n",
        (FENCE,),
    ),
    Plant(
        "a fence counts as a publication",
        REFS_PY,
        'summary().get("errata.publication") == publication_id\n',
        'summary() is not None\n',
        (FENCE,),
    ),
    Plant(
        "a publication whose tag was dropped never was",
        REFS_PY,
        'next(iter(find_marked_snapshots(java, table, "errata.publication", publication_id)), None), False\n',
        "None, False\n",
        (f"{PUBLICATION}a_publication_is_found_by_its_tag_and_without_it",),
    ),
    Plant(
        "what no reader can open is called published",
        PUBLISHED,
        "    if count_manifests(table, snapshot_id) is not None:\n",
        "    if True:\n",
        (UNREADABLE,),
    ),
    Plant(
        "a table that was set back is an alarm for ever",
        PUBLISHED,
        "    if main_head(table) != snapshot_id:\n",
        "    if False:\n",
        (UNREADABLE,),
    ),
    # ---------------------------------------------------------------------------------------- tables beside a target
    Plant(
        "rows beside a target are shown by each who lands them",
        BESIDE,
        "            if landed is not None:\n",
        "            if False:\n",
        (f"{PUBLICATION}rows_beside_a_target_are_shown_once",),
    ),
    Plant(
        "the branch of rows that are shown stays",
        BESIDE,
        "            commit.removeRef(branch)\n",
        "",
        (f"{PUBLICATION}rows_beside_a_target_are_shown_once",),
    ),
    Plant(
        "whatever is on a branch of that name is shown",
        BESIDE,
        '        if head is None or branch not in (summary.get("errata.branch"), summary.get(ROWS_PROPERTY)):\n',
        "        if head is None:\n",
        (f"{PUBLICATION}a_branch_that_came_back_from_main_is_not_taken_for_rows_that_wait",),
    ),
    Plant(
        "a table beside the target is created in one try",
        "engines/spark/write/side_tables.py",
        "        retry_commit(lambda: self._session.sql(statement))\n",
        "        self._session.sql(statement)\n",
        (f"{STATEMENTS}a_table_beside_the_target_is_created_once_whatever_the_catalog_answers",),
    ),
)  # fmt: skip
