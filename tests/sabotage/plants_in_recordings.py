"""Bugs to plant in recordings and in what runs read of them; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

RULES = "tests/unit/model/test_recorded_files.py::test_"
IMPORTS = "tests/unit/commands/test_import.py::test_"
LINES = "tests/unit/engines/test_recorded_lines.py::test_"
LEDGER = "tests/unit/ledger/test_recorded_files.py::test_"
APIS = "tests/consumers/test_recorded_apis.py::test_"
SPARK = "tests/spark/test_recordings.py::test_"
REDACTION = "tests/unit/commands/test_redaction.py::test_"
ADOPTION = "tests/unit/commands/test_adopt_parquet.py::test_"

IN_RECORDINGS = (
    Plant(
        "the same content for another day is the same file",
        "model/recording/recorded_file.py",
        "        about = [self.range.start, self.range.end] if self.range else [self.name]\n",
        "        about: list[str] = []\n",
        (f"{RULES}the_same_content_for_another_day_is_another_file[ignored]",),
    ),
    Plant(
        "a name with other content is taken beside the earlier file",
        "model/recording/recorded_file.py",
        '    if replaced and (duplicates != "correction" or len(replaced) > 1):\n',
        "    if False:\n",
        (f"{RULES}a_name_with_other_content_is_never_taken_silently",),
    ),
    Plant(
        "a decision about a file is not made again when it is recorded",
        "ledger/recordings/recorded_files.py",
        "            if now != intake:\n",
        "            if False:\n",
        (f"{LEDGER}a_decision_that_is_out_of_date_is_refused[sqlite]",),
    ),
    Plant(
        "parts of files are left beside them",
        "engines/recordings/stored_bytes.py",
        "        target.move(part, to)\n",
        "        target.copy_file(part, to)\n",
        (f"{IMPORTS}a_killed_import_is_finished_by_the_same_command[import.after_copy]",),
    ),
    Plant(
        "a file that changes while it is imported is recorded with the hash of before",
        "engines/recordings/landing.py",
        "            if (digest.size, digest.value.hexdigest()) != (seen.bytes, seen.sha256):\n",
        "            if False:\n",
        (f"{LINES}a_file_that_changes_while_it_is_imported_is_not_stored",),
    ),
    Plant(
        "gzip that is cut off counts as a short file",
        "engines/recordings/lines.py",
        "    if is_open:\n",
        "    if False:\n",
        (f"{LINES}gzip_that_is_not_whole_is_rejected",),
    ),
    Plant(
        "a long line is kept whole",
        "engines/recordings/lines.py",
        "        if len(rest) > MAX_LINE_BYTES:\n",
        "        if False:\n",
        (f"{LINES}a_line_of_gigabytes_is_one_bad_line_in_little_memory",),
    ),
    Plant(
        "the last of two equal keys counts",
        "engines/recordings/text_rows.py",
        "    if len(found) < len(pairs):\n",
        "    if False:\n",
        (f"{LINES}a_line_that_is_no_object_has_a_problem_and_its_neighbours_do_not",),
    ),
    Plant(
        "recorded files are checked by size alone",
        "engines/files/source.py",
        "    if version != file.version:\n",
        "    if version != file.version and not file.version.startswith(HASH):\n",
        (f"{LINES}a_recorded_file_is_checked_by_its_hash",),
    ),
    Plant(
        "rows of another time than their file are read by no run",
        "engines/spark/inputs/recorded_rows.py",
        "    told = F.when(is_good & strays, F.lit(OUTSIDE)).otherwise(problem)\n",
        "    told, strays = problem, is_good & F.lit(False)\n",
        (f"{SPARK}every_line_is_used_or_quarantined_once",),
    ),
    Plant(
        "a file that an open run needs is removed",
        "commands/upkeep/expiry.py",
        "    gone = [one for one in due if one.file_id not in needed]\n",
        "    gone = list(due)\n",
        ("tests/protocol/test_recordings.py::test_a_file_that_an_open_run_needs_is_kept",),
    ),
    Plant(
        "rows that repeat on several pages are accepted",
        "engines/recordings/http_window.py",
        "            self._repeated[str(value)] = None\n",
        "            pass\n",
        (f"{APIS}pages_that_repeat_rows_are_rejected_with_the_reason",),
    ),
    Plant(
        "a correction of one day takes another day of the same name away",
        "model/recording/recorded_file.py",
        "    return one.range is None or seen.range is None or one.range.overlaps(seen.range)\n",
        "    return True\n",
        (f"{RULES}a_name_that_comes_for_another_time_is_another_file[correction]",),
    ),
    Plant(
        "windows that overlap are recorded, and rows count twice",
        "commands/sources/record.py",
        "    others = [one for one in held if one.range and one.range != window and one.range.overlaps(window)]\n",
        "    others: list[RecordedFile] = []\n",
        ("tests/copies/test_recorded_queries.py::test_a_window_that_overlaps_another_one_is_refused",),
    ),
    Plant(
        "an error page is kept, so that the same command fails for ever",
        "engines/recordings/http_window.py",
        "            page = self._parse(n, answer.body)\n",
        "            page = None\n",
        (f"{APIS}an_error_page_with_status_200_is_no_page",),
    ),
    Plant(
        "a redacted file comes back when it is imported again",
        "model/recording/recorded_file.py",
        "    if erased := next((one for one in known if one.sha256 == seen.sha256 and one.is_erased), None):\n",
        "    if erased := next((one for one in known if one.sha256 == 'none'), None):\n",
        (f"{REDACTION}a_redacted_file_does_not_come_back_when_it_is_imported_again",),
    ),
    Plant(
        "lines that nobody can read stay in a redacted file",
        "engines/recordings/redacted_rows.py",
        "        is_about = None if row.problem is not None else finder.is_about(row.values)\n",
        "        is_about = finder.is_about(row.values)\n",
        (f"{REDACTION}rows_of_a_subject_are_gone_and_all_others_keep_their_place[False]",),
    ),
    Plant(
        "subjects inside the messages of a recorded topic are not looked for",
        "model/recording/subject_names.py",
        "        fields = self.fields if VALUE in columns else ()\n",
        "        fields = ()\n",
        (f"{REDACTION}messages_of_a_recorded_topic_go_by_the_fields_of_their_key_and_value",),
    ),
    Plant(
        "messages that nobody can read stay in a redacted topic",
        "engines/recordings/redacted_rows.py",
        "        return None if value is None and not is_marker else False\n",
        "        return False\n",
        (f"{REDACTION}messages_of_a_recorded_topic_go_by_the_fields_of_their_key_and_value",),
    ),
    Plant(
        "messages are taken out of a change log",
        "commands/sources/redaction.py",
        "    if known.is_log:\n",
        "    if False:\n",
        (f"{REDACTION}a_change_log_with_changes_of_a_subject_is_named_and_stays",),
    ),
    Plant(
        "the bytes of a redacted file stay",
        "commands/sources/redaction.py",
        "    workspace.engines.recordings.remove(tuple(list_places(one)))\n",
        "",
        (f"{REDACTION}rows_of_a_subject_are_gone_and_all_others_keep_their_place[False]",),
    ),
    Plant(
        "a folder whose files have another value becomes a partition",
        "model/dataset/parquet_files.py",
        "    return one.rows == 0 or (value is not None and one.bounds.get(key) == (value, value))\n",
        "    return True\n",
        (f"{ADOPTION}a_column_in_folders_and_files_must_be_the_same",),
    ),
    Plant(
        "files with other columns become one table",
        "model/dataset/parquet_files.py",
        "        if dict(one.columns) != dict(first.columns):\n",
        "        if False:\n",
        (f"{ADOPTION}files_that_do_not_fit_are_refused_by_name",),
    ),
    Plant(
        "a restore empties a column that the other table lacks",
        "planning/inputs/restore_origin.py",
        '                problems.append(f"it has no column {column.name}")\n',
        "                missing.append(column.name)\n",
        ("tests/unit/planning/test_restore_origin.py::test_a_column_that_is_missing_is_a_problem",),
    ),
)
