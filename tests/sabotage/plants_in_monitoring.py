"""Bugs to plant in metrics and log lines; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

FIGURES = "tests/unit/ledger/test_figures.py::test_"
LOGS = "tests/protocol/test_logs.py::test_"
ALERTS = "tests/unit/monitoring/test_alerts.py::test_"

IN_MONITORING = (
    Plant(
        "attempts that were lost do not show",
        "ledger/figures/run_work.py",
        "found.lost_attempts = int(row.n)",
        "found.lost_attempts = 0",
        (f"{FIGURES}only_adopted_attempts_count[sqlite]",),
    ),
    Plant(
        "a wave that is half out counts as visible",
        "ledger/figures/run_results.py",
        "seen = len({one.wave for one in mine.values()} - waiting) if out else 0",
        "seen = len({one.wave for one in mine.values()}) if out else 0",
        (f"{FIGURES}a_wave_is_visible_when_all_of_it_is_published_and_not_after_its_rollback[sqlite]",),
    ),
    Plant(
        "a ledger that is down counts as up",
        "monitoring/exposition.py",
        "is_up, found = False, {}",
        "is_up, found = True, {}",
        (f"{ALERTS}each_alert_fires_when_it_should_and_none_on_a_healthy_ledger",),
    ),
    Plant(
        "log lines have the message of an error",
        "worker/attempt.py",
        'logs.log("attempt.error", logging.WARNING, code=error.code)',
        'logs.log("attempt.error", logging.WARNING, code=error.code, message=error.message)',
        (f"{LOGS}a_failure_is_logged_by_its_code_and_without_what_the_exception_says",),
    ),
    Plant(
        "log lines have the whole body of an audit entry",
        "ledger/audit/log_lines.py",
        'fields: dict[str, Any] = {"run_id": entry.run_id, "seq": entry.seq}',
        'fields: dict[str, Any] = {"run_id": entry.run_id, "seq": entry.seq, "body": str(entry.body)}',
        (f"{LOGS}a_failure_is_logged_by_its_code_and_without_what_the_exception_says",),
    ),
    Plant(
        "a line about another run has the fields of this one",
        "logs.py",
        'known = bound if run_id == bound.get("run_id") else {}',
        "known = bound",
        (f"{LOGS}a_line_about_another_run_has_none_of_the_fields_of_this_one",),
    ),
    Plant(
        "attempts lose the fields of their chunk",
        "worker/attempt.py",
        "            logs.bind(fields),\n            traces",
        "            traces",
        (f"{LOGS}every_line_of_an_attempt_has_its_run_chunk_range_version_target_and_mode",),
    ),
)
