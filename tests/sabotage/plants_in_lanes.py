"""Bugs to plant around the versions of Spark that Errata runs on."""

from __future__ import annotations

from sabotage.plant import Plant

LANES = "tests/unit/jars/test_lanes.py::test_"
ENGINE = "tests/protocol/test_other_engine.py::test_"

IN_LANES = (
    Plant(
        "a plan for one Spark is computed on another",
        "jars/sealed.py",
        "    if not other:\n",
        "    if other or not other:\n",
        (
            f"{LANES}a_plan_sealed_for_one_spark_is_refused_on_the_other",
            f"{ENGINE}a_run_sealed_for_another_spark_is_refused_and_stays_approved",
        ),
    ),
    Plant(
        "a jar that was replaced since counts as the sealed one",
        "jars/sealed.py",
        "if here.get(coordinate) != digest)",
        "if coordinate not in here)",
        (f"{LANES}a_plan_sealed_with_a_jar_that_was_changed_since_is_refused",),
    ),
    Plant(
        "a Spark without jars gets those of another",
        "jars/lane.py",
        "    if minor not in lanes:\n",
        "    if not minor:\n",
        (f"{LANES}a_spark_without_jars_is_refused_with_the_command_that_installs_one",),
    ),
    Plant(
        "another Spark measures what it did not compute",
        "commands/publish/validate.py",
        "        require_sealed_engine(context)\n",
        "        pass\n",
        (f"{ENGINE}what_another_spark_computed_is_not_measured_here",),
    ),
)
