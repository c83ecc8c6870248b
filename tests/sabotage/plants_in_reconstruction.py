"""Bugs to plant in the rebuilding of events that were never recorded."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_RECONSTRUCTION"]

REBUILT = "tests/spark/test_reconstruct.py::test_"
NEAREST = "tests/spark/test_nearest.py::test_"
ERASED = "tests/spark/test_reconstruct_runs.py::test_recorded_events_of_erased_subjects_are_left_out_and_counted"
JUDGED = "tests/unit/gate/test_origins.py::test_origins_are_judged"
VERSIONS = "tests/unit/planning/test_rebuild_rules.py::test_"

IN_RECONSTRUCTION = (
    Plant(
        "the nearest pair is taken although it leaves more events over",
        "reconstruct/nearest.py",
        '    return _cell(cell["pairs"] - 1,',
        '    return _cell(cell["pairs"],',
        (f"{NEAREST}the_pairing_is_the_best_of_all_pairings",),
    ),
    Plant(
        "of many pairings any is taken, not the nearest",
        "reconstruct/nearest.py",
        'cell["apart"] + apart,',
        'cell["apart"],',
        (f"{NEAREST}the_pairing_is_the_best_of_all_pairings",),
    ),
    Plant(
        "a source of lower precedence adds what a better one has",
        "reconstruct/rebuild.py",
        "    is_known = (F.col(_PLACE) < place) & ",
        "    is_known = (F.col(_PLACE) == 0) & ",
        (f"{REBUILT}what_the_table_has_wins_and_sources_follow_in_order",),
    ),
    Plant(
        "an event that a source has by identity explains another one of it",
        "reconstruct/rebuild.py",
        " & ~F.array_contains(_SEEN, rule.source)",
        "",
        (f"{REBUILT}a_source_explains_its_own_identified_event_only_once",),
    ),
    Plant(
        "rebuilt events pass as recorded ones",
        "engines/spark/inputs/recorded_events.py",
        "rows.where(F.col(quoted(ORIGIN)).isNull())",
        "rows",
        ("tests/spark/test_reconstruct_runs.py::test_missing_events_are_rebuilt_once_and_a_bad_rule_is_superseded",),
    ),
    Plant(
        "recorded events of erased subjects are read",
        "engines/spark/inputs/recorded_events.py",
        "    if manifest.erasure is not None and manifest.erasure.columns:\n",
        "    if False:\n",
        (ERASED,),
    ),
    Plant(
        "someone erased in the middle whom only recorded events know is published",
        "engines/spark/measure/erasure.py",
        "found | self._find_recorded(spark, manifest, access)",
        "found",
        (ERASED,),
    ),
    Plant(
        "a lost recorded event passes the gate",
        "gate/verdict/origins.py",
        "    if counts[RECORDED_ROWS] != before:\n",
        "    if False:\n",
        (JUDGED,),
    ),
    Plant(
        "a changed recorded event passes the gate",
        "gate/verdict/origins.py",
        "    elif before and _to_number",
        "    elif not before and _to_number",
        (JUDGED,),
    ),
    Plant(
        "a rule changes under its old version",
        "planning/inputs/rebuild_rules.py",
        "        if known is not None and known.rule != rule:\n",
        "        if known is None:\n",
        (f"{VERSIONS}a_rule_that_changed_under_its_version_is_refused",),
    ),
)
