"""Bugs to plant in copies in Snowflake and in the hash of a row; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

SWAP = "tests/unit/engines/copies/test_snowflake_swap.py::test_"
DIFFERENCE = f"{SWAP}any_difference_rolls_back"
REVIEWED = f"{SWAP}the_statements_are_the_reviewed_ones"
SESSION = "tests/unit/engines/copies/test_snowflake_session.py::test_"
DESCRIBED = "tests/unit/engines/copies/test_snowflake_description.py::test_"
CONTRACT = "tests/copies/test_snowflake_contract.py::TestSnowflake::test_"
FILES = "tests/unit/model/copy/test_lake_file.py::test_"
TEXT = "tests/unit/model/copy/test_row_text.py::test_"
LINKED = "tests/protocol/test_linked_tables.py::test_"
COPIES = "engines/copies/snowflake_copies.py"
SESSIONS = "engines/copies/snowflake_session.py"
STATEMENTS = "engines/copies/snowflake_statements.py"
LAKE_FILE = "model/copy/lake_file.py"
ROW_TEXT = "model/copy/row_text.py"

IN_SNOWFLAKE = (
    # ------------------------------------------------------------------------------------------ marker and fence
    Plant(
        "a swap lands although its marker was voided",
        COPIES,
        "        return changed == _BOTH\n",
        "        return changed >= _LOCK_ONLY\n",
        (f"{DIFFERENCE}[the marker is not open]",),
    ),
    Plant(
        "a marker that is over is changed again",
        STATEMENTS,
        "PUBLICATION = ? AND ATTEMPT = ? AND STATE = 'open'))",
        "PUBLICATION = ? AND ATTEMPT = ?))",
        (f"{CONTRACT}without_an_open_marker_nothing_is_written",),
    ),
    Plant(
        "markers of two attempts do not wait for each other",
        STATEMENTS,
        "WHERE (PUBLICATION = '' OR (PUBLICATION = ?",
        "WHERE (PUBLICATION = '-' OR (PUBLICATION = ?",
        (f"{CONTRACT}a_swap_replaces_its_partitions_and_no_others",),
    ),
    Plant(
        "two processes write the same marker, because no key is enforced",
        COPIES,
        '                run.require_count("locked", run.run(sql.LOCK_MARKERS).count, _LOCK_ONLY)\n',
        "",
        (f"{REVIEWED}[open_marker]",),
    ),
    Plant(
        "a process that slept opens a marker beside that of a later attempt",
        COPIES,
        "                if is_late or state not in (None, MarkerState.OPEN):\n",
        "                if state not in (None, MarkerState.OPEN):\n",
        (f"{SWAP}an_attempt_that_is_late_opens_no_marker",),
    ),
    # ---------------------------------------------------------------------------------- one session, one transaction
    Plant(
        "a marker that was changed in another session counts",
        COPIES,
        "        if changed not in (_BOTH, _LOCK_ONLY):\n",
        "        if changed > _BOTH:\n",
        (f"{DIFFERENCE}[the marker was changed in another session]",),
    ),
    Plant(
        "a session that was lost is committed",
        SESSIONS,
        "        if read_identity(session) != identity:\n",
        "        if read_identity(session).transaction is None:\n",
        (f"{DIFFERENCE}[the session is another one]", f"{DIFFERENCE}[the transaction is another one]"),
    ),
    Plant(
        "a statement that failed leaves the transaction open",
        SESSIONS,
        "        _roll_back(session)\n        raise",
        "        raise",
        (f"{SWAP}a_statement_that_fails_ends_the_transaction",),
    ),
    Plant(
        "statements of a lost session commit by themselves",
        SESSIONS,
        '            "AUTOCOMMIT": False,\n',
        '            "AUTOCOMMIT": True,\n',
        (f"{SESSION}a_session_commits_nothing_by_itself_and_waits_for_nothing_for_ever",),
    ),
    Plant(
        "a request that gets no answer is repeated for ever",
        SESSIONS,
        '        "network_timeout": NETWORK_SECONDS,\n',
        '        "network_timeout": None,\n',
        (f"{SESSION}a_session_commits_nothing_by_itself_and_waits_for_nothing_for_ever",),
    ),
    Plant(
        "a lost answer to the commit is taken for a failure",
        SESSIONS,
        "        raise OutcomeUnknown(\n",
        "        raise EngineError(\n",
        (f"{SWAP}only_a_lost_answer_to_the_commit_leaves_the_outcome_unknown",),
    ),
    Plant(
        "an error of the connection is taken for an answer of Snowflake",
        SESSIONS,
        " or not 0 <= error.errno < 250_000:\n",
        " or error.errno < 0:\n",
        (f"{SESSION}what_is_no_answer_of_snowflake_is_a_lost_answer",),
    ),
    Plant(
        "a value of a row is in an error",
        SESSIONS,
        ' if error.errno in _ABOUT_NAMES else ""\n',
        ' if error.errno else ""\n',
        (f"{SESSION}messages_of_snowflake_are_passed_on_only_if_they_are_about_names",),
    ),
    # ---------------------------------------------------------------------------------------- rows of other writers
    Plant(
        "rows that were inserted before the deletion are deleted unseen",
        COPIES,
        "                if deleted.count != sum(one.rows for one in swap.expected.values()):\n",
        "                if deleted.count < sum(one.rows for one in swap.expected.values()):\n",
        (f"{DIFFERENCE}[rows were added before the deletion]",),
    ),
    Plant(
        "the number of inserted rows is not looked at",
        COPIES,
        '                run.require_count("inserted", inserted.count, swap.rows)\n',
        "",
        (f"{DIFFERENCE}[fewer rows were inserted]",),
    ),
    Plant(
        "a statement that was sent twice doubles the rows",
        COPIES,
        "                if differing := find_differing(wanted, found, copy.tolerance):\n",
        "                if differing := find_differing(wanted, wanted, copy.tolerance):\n",
        (f"{DIFFERENCE}[a statement was sent twice]",),
    ),
    Plant(
        "rows are replaced that nobody compared",
        COPIES,
        "                run.require_rows(swap.expected)\n",
        "",
        (f"{DIFFERENCE}[rows changed, number not]",),
    ),
    Plant(
        "a partition goes back to an older acceptance",
        COPIES,
        "                if lowered or recorded != {",
        "                if recorded != {",
        (f"{CONTRACT}no_partition_goes_back_to_an_older_acceptance",),
    ),
    Plant(
        "rows of others that were updated and then deleted are not named",
        COPIES,
        "        return dict.fromkeys(differing, told), ()\n",
        "        return {}, ()\n",
        (f"{SWAP}rows_of_others_that_were_deleted_unseen_are_named_on_the_receipt",),
    ),
    # ----------------------------------------------------------------------------------------------------- staging
    Plant(
        "a late loader empties the staging table of another",
        STATEMENTS,
        '"CREATE TRANSIENT TABLE {staging}',
        '"CREATE OR REPLACE TRANSIENT TABLE {staging}',
        (f"{CONTRACT}staging_is_never_loaded_twice",),
    ),
    Plant(
        "what the role may not see is taken for nothing",
        "engines/copies/snowflake_description.py",
        '        return (f"unknown, because the role may not see them ({refused.number:06d})",)\n',
        "        return () if refused else ()\n",
        (f"{DESCRIBED}what_the_role_may_not_see_is_not_taken_for_nothing",),
    ),
    *(
        Plant(
            f"a file is loaded as it is although {name}",
            LAKE_FILE,
            f"    if {condition}:\n",
            f"    if {condition} and not file:\n",
            (f"{FILES}a_file_that_a_warehouse_would_read_differently_is_refused",),
        )
        for name, condition in (
            ("it is not Parquet", 'file.format.lower() != "parquet"'),
            ("it is encrypted", "file.is_encrypted"),
            ("rows of it are deleted", "file.has_deletes"),
            ("it has rows of other partitions", "not file.is_whole"),
        )
    ),
    Plant(
        "a file from before a column was renamed gives NULL",
        LAKE_FILE,
        "    if found.name != wanted.name:\n",
        '    if found.name == "":\n',
        (f"{FILES}a_file_that_a_warehouse_would_read_differently_is_refused",),
    ),
    Plant(
        "a column that was dropped and added again gives the old values",
        LAKE_FILE,
        "one.field_id is not None and one.field_id == wanted.field_id",
        "one.name == wanted.name",
        (f"{FILES}a_file_that_a_warehouse_would_read_differently_is_refused",),
    ),
    Plant(
        "a file with another type is loaded as it is",
        LAKE_FILE,
        "    if found.type != wanted.type:\n",
        '    if found.type == "":\n',
        (f"{FILES}a_file_that_a_warehouse_would_read_differently_is_refused",),
    ),
    # --------------------------------------------------------------------------------------------- the hash of a row
    Plant(
        "columns of a row run into each other",
        ROW_TEXT,
        '    return "".join("N" if text is None else f"{len(text)}:{text}" for text in texts)\n',
        '    return "".join("N" if text is None else text for text in texts)\n',
        (f"{TEXT}different_rows_have_different_text",),
    ),
    Plant(
        "a decimal zero has another text than in SQL",
        ROW_TEXT,
        '    return ("-" if sign and whole else "")',
        '    return ("-" if sign else "")',
        (f"{TEXT}values_have_one_text",),
    ),
    Plant(
        "a column that cannot be compared is left out in silence",
        ROW_TEXT,
        "    if refusal := find_type_refusal(column.type):\n",
        '    if (refusal := find_type_refusal(column.type)) and column.name == "":\n',
        (f"{TEXT}types_without_a_common_text_are_refused_with_the_reason",),
    ),
    # ------------------------------------------------------------------------------- tables that read the lake itself
    Plant(
        "a table that still reads older metadata counts as delivered",
        "delivery/copies/linked_tables.py",
        "    if not is_current(found, current, lake.list_metadata(item.table)):\n",
        "    if not found:\n",
        (f"{LINKED}a_table_that_still_reads_older_metadata_is_not_delivered",),
    ),
)
