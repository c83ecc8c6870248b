"""Bugs to plant in change data capture."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_CHANGE_LOGS"]

POSITIONS = "tests/unit/model/test_log_positions.py::test_"
LOG = "tests/topics/test_change_log.py::test_"

IN_CHANGE_LOGS = (
    Plant(
        "a change counts from its own position on",
        "engines/spark/inputs/change_messages.py",
        '    at = F.when(F.col("op") == "r", F.col("lsn")).otherwise(F.col("__at"))\n',
        '    at = F.col("lsn")\n',
        (
            f"{LOG}the_state_at_a_commit_is_what_the_database_held",
            f"{LOG}a_recorded_connector_gives_what_the_table_held",
        ),
    ),
    Plant(
        "rows from before a truncate stay",
        "engines/spark/inputs/table_rebuild.py",
        '        seen = seen.where(later if reset.kind == "truncate" else later | is_row)\n',
        "        seen = seen.where(F.lit(True) | later | is_row)\n",
        (
            f"{LOG}the_state_at_a_commit_is_what_the_database_held",
            f"{LOG}a_recorded_connector_gives_what_the_table_held",
        ),
    ),
    Plant(
        "repeated messages are changes again",
        "engines/spark/inputs/table_rebuild.py",
        '.dropDuplicates(["key", "op", "tx", "lsn"])',
        "",
        (f"{LOG}every_change_is_there_once",),
    ),
    Plant(
        "a position after the last END is answered",
        "model/change_log/log_positions.py",
        "    if not is_snapshot and (facts.ends.last is None or facts.ends.last < position):\n",
        "    if not is_snapshot and facts.ends.last is None:\n",
        (f"{POSITIONS}a_position_that_cannot_be_answered_exactly_is_refused",),
    ),
    Plant(
        "an unfinished snapshot resets the table",
        "model/change_log/log_contents.py",
        '        return self.kind == "initial" and self.has_last and (self.has_first or self.rows == 1)\n',
        '        return self.kind == "initial"\n',
        (f"{POSITIONS}a_position_that_cannot_be_answered_exactly_is_refused",),
    ),
    Plant(
        "a log whose beginning is gone passes as whole",
        "model/change_log/log_positions.py",
        "        if one.first_offset > 0 and one.changes and not is_before:\n",
        "        if False:\n",
        (f"{POSITIONS}a_position_that_cannot_be_answered_exactly_is_refused",),
    ),
    Plant(
        "an empty snapshot goes unnoticed",
        "model/change_log/log_positions.py",
        "        if begun < before:\n",
        "        if False:\n",
        (f"{POSITIONS}a_connector_that_started_again_without_a_snapshot_is_noticed",),
    ),
    Plant(
        "changes follow a truncate as if nothing had happened",
        "model/change_log/log_positions.py",
        "        if one.at > oldest:\n",
        "        if False:\n",
        (f"{POSITIONS}changes_since_a_run_are_not_enough_after_a_truncate",),
    ),
)
