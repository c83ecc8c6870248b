"""Bugs to plant in what decides about staleness and standing approvals; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

STALE = "tests/protocol/test_stale.py::test_"
LATE = "tests/protocol/test_late.py::test_"
JUDGE = "tests/unit/staleness/test_judgement.py::test_"
INPUT = "tests/unit/engines/test_iceberg_metadata.py::test_"
COUNTED = "tests/unit/ledger/test_standing.py::test_"

IN_STALENESS = (
    # ---------------------------------------------------------------------------------------- stale without a notice
    Plant(
        "a live job that read before a change and committed after it looks fresh",
        "staleness/times.py",
        "    limit = written.at_ms - longest_run_ms\n",
        "    limit = written.at_ms\n",
        (f"{JUDGE}by_time_a_partition_is_current_only_if_every_change_is_older_than_the_longest_run",),
    ),
    Plant(
        "times count as proof though nobody declared how long a job takes",
        "staleness/times.py",
        "    if longest_run_ms is None:\n",
        "    longest_run_ms = longest_run_ms or 0\n    if longest_run_ms is None:\n",
        (f"{JUDGE}without_a_declared_longest_run_times_show_nothing",),
    ),
    Plant(
        "an input that its owner rolled back is taken for unchanged",
        "staleness/times.py",
        "    if set_back is not None:\n",
        "    if set_back is None:\n        set_back = 0\n    if False:\n",
        (f"{STALE}by_time_a_rollback_of_the_input_counts_from_when_it_became_current",),
    ),
    Plant(
        "a partition of the input that was empty at planning is never compared",
        "staleness/judgement.py",
        "        changed = [one for one in sorted({*held, *holds}) if held.get(one) != holds.get(one)]\n",
        "        changed = [one for one in sorted(held) if held.get(one) != holds.get(one)]\n",
        (f"{JUDGE}a_partition_is_stale_exactly_if_something_in_its_window_is_not_as_it_was",),
    ),
    Plant(
        "a partition of the input that was deleted is never compared",
        "staleness/judgement.py",
        "        held, holds = then.list_held(partition), now.list_held(partition)\n",
        "        holds = now.list_held(partition)\n"
        "        held = {name: one for name, one in then.list_held(partition).items() if name in holds}\n",
        (f"{JUDGE}a_partition_is_stale_exactly_if_something_in_its_window_is_not_as_it_was",),
    ),
    Plant(
        "pins of a run speak for rows that a live job wrote over its output",
        "staleness/claims.py",
        "    yield from (name for name in statement.files if name not in changed)\n",
        "    yield from statement.files\n",
        (f"{STALE}a_record_is_silent_once_somebody_else_wrote_the_partition",),
    ),
    Plant(
        "files that a rollback committed again count as newly computed",
        "staleness/times.py",
        "    if any(_PUBLICATION in one.summary for one in known):\n",
        "    if False:\n",
        (f"{STALE}after_a_rollback_to_rows_of_before_errata_nothing_is_claimed",),
    ),
    Plant(
        "a late append makes the rows before it look newly computed",
        "staleness/times.py",
        "    return Written(min(one.at_ms for one in known))\n",
        "    return Written(max(one.at_ms for one in known))\n",
        (f"{STALE}by_time_the_oldest_rows_of_a_partition_count",),
    ),
    Plant(
        "an attestation closes staleness for inputs that it did not compare",
        "staleness/judgement.py",
        "        if not reasons:\n            return Judgement(partition, CURRENT, claim.basis, claim=claim)\n",
        "        if not reasons or len(facts.claims[partition]) > 1:\n"
        "            return Judgement(partition, CURRENT, claim.basis, claim=claim)\n",
        (f"{STALE}an_attestation_closes_staleness_for_exactly_the_pins_it_compared",),
    ),
    Plant(
        "a live job reports inputs that changed while it worked",
        "live_writers/input_report.py",
        '        return f"{nothing}: the job committed nothing to the partitions"\n',
        '        return f"{nothing}: the job committed nothing to the partitions"\n'
        '    reading = read_for_report(workspace, target.table, reading.partitions, "")\n',
        (f"{STALE}a_change_while_a_live_job_works_is_not_lost",),
    ),
    Plant(
        "a live job reports partitions that it only named",
        "live_writers/input_report.py",
        "    return {*writers} <= {one.snapshot_id for one in history.commits}\n",
        "    return True\n",
        (f"{STALE}a_report_is_about_partitions_that_the_job_wrote_whole",),
    ),
    Plant(
        "the call of a live job that lost reports what it read for the rows of the other",
        "live_writers/input_report.py",
        "    if reading.beside:\n",
        "    if False:\n",
        (f"{STALE}of_two_calls_of_a_job_at_once_only_the_one_that_read_first_reports",),
    ),
    Plant(
        "a program that failed reports what it left as computed",
        "cli/commands/live.py",
        "    if code:\n",
        "    if False:\n",
        ("tests/unit/live_writers/test_report_command.py::test_a_program_that_failed_reports_nothing",),
    ),
    Plant(
        "rows of an input in files of an older spec are never compared",
        "engines/iceberg/metadata/data_files.py",
        "        if key in totals or name in shared.totals:\n",
        "        if key in totals:\n",
        (f"{INPUT}rows_in_files_of_an_older_spec_belong_to_every_day_that_they_may_be_in",),
    ),
    Plant(
        "delete files of another spec do not belong to what was read",
        "engines/iceberg/metadata/data_files.py",
        "                for name in shared.add(entry, file, here, text):\n",
        "                for name in shared.add(entry, file, here, text) if not entry.content else ():\n",
        (f"{INPUT}delete_files_of_another_spec_belong_to_what_is_read",),
    ),
    # -------------------------------------------------------------------------------------------- standing approvals
    Plant(
        "a standing approval covers a product whose checks were edited since",
        "approval/standing_scope.py",
        "    if run.product_digest != scope.product_digest:\n",
        "    if False:\n",
        ("tests/unit/approval/test_standing_scope.py::test_a_run_is_covered_only_inside_every_limit",),
    ),
    Plant(
        "two schedulers at once each count the limit as not yet used",
        "ledger/store/standing.py",
        "    mine = (standing_use.c.product == run.product) & (standing_use.c.at_ms > since)\n",
        "    mine = (standing_use.c.product == run.product) & (standing_use.c.at_ms > tx.now_ms)\n",
        (f"{COUNTED}twenty_at_once_count_each_other",),
    ),
    Plant(
        "a rolled-back run leaves its standing approval in force",
        "approval/standing.py",
        '            if publication.kind == "rollback":\n',
        "            if False:\n",
        (f"{LATE}a_rollback_suspends_it",),
    ),
    Plant(
        "a finding leaves the standing approval in force",
        "approval/standing.py",
        "            if not verdict.passed or not is_clean(verdict.checks):\n",
        "            if False:\n",
        (f"{LATE}a_change_that_is_too_large_is_not_published_and_suspends_it",),
    ),
    Plant(
        "a revoked standing approval still publishes what was sealed under it",
        "approval/quorum.py",
        "    why = explain_void_standing(workspace, run, manifest, used)\n",
        '    why = ""\n',
        (f"{LATE}revocation_and_roles_are_checked_at_publication",),
    ),
    Plant(
        "the limits of change that were approved are not in the plan",
        "commands/plan/plan.py",
        "        product = add_limits(product, standing.scope)\n",
        "        pass\n",
        (f"{LATE}a_standing_approval_covers_a_run_from_plan_to_publication",),
    ),
    Plant(
        "evidence names people who did not decide on a standing approval",
        "evidence/verifier.py",
        '            same = told == (f"standing.{one[\'decision\']}", one["person"], row["digest"])\n',
        "            same = bool(told)\n",
        (f"{LATE}a_lie_about_a_standing_approval_is_contradicted",),
    ),
    Plant(
        "a closed period is covered",
        "approval/standing_scope.py",
        "    if run.locked:\n",
        "    if False:\n",
        ("tests/unit/approval/test_standing_scope.py::test_a_run_is_covered_only_inside_every_limit",),
    ),
    Plant(
        "a scheduler takes inputs that are not complete for nothing to do",
        "commands/plan/stale.py",
        "nothing_stale = not behind and not waiting",
        "nothing_stale = not behind",
        (f"{STALE}a_partition_waits_while_its_input_is_not_complete",),
    ),
)
