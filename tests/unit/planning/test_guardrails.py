from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from errata.model.manifest import Override
from errata.model.near_miss import NearMiss
from errata.model.partition import Grain, from_ordinal
from errata.model.product import Input, Limits
from errata.planning.build import Plan
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_command import format_possible_plan
from errata.planning.request import RULES
from errata.ports.tables import ActiveRun, PartitionSize
from unit.planning.worlds import (
    CODE,
    DAYS,
    INPUTS,
    NOW,
    PRODUCT,
    PROJECT,
    REWOUND,
    TARGET,
    ask,
    levels,
    message,
    plan,
    protected,
    without,
)

OTHER = ActiveRun("bf-1", "d" * 64, "running", PRODUCT.target.table, frozenset({"2026-01-02", "2026-01-03"}))


def test_partitions_outside_the_years_of_dates_are_named_and_block_nothing():
    """The note says which, in which file, and gives a statement for each side of the calendar."""
    strange = {"+57971-02-25": "s3://b/late.parquet", "-0044-03-15": "s3://b/early.parquet"}
    made = plan(target=replace(TARGET, unnameable=strange))
    (note,) = [verdict for verdict in made.verdicts if "outside the years" in verdict.message]
    assert (note.rule, note.level) == ("range", "warn")
    assert "2 partitions outside the years 0001 to 9999 cannot be chosen and are left alone" in note.message
    assert "+57971-02-25 (in s3://b/late.parquet)" in note.message
    column, table = PRODUCT.target.column, "`.`".join(PRODUCT.target.table.split("."))
    where = f"`{column}` >= DATE'10000-01-01' OR `{column}` < DATE'0001-01-01'"
    assert note.message.endswith(f"DELETE FROM `{table}` WHERE {where}")
    assert made.manifest is not None


ELSEWHERE = (
    "append", "change-log", "kind", "policy", "privacy", "reference", "restore", "rewrite", "rule-versions", "waiting",
)  # fmt: skip
"""Rules of other modes, kinds and inputs."""


def test_a_good_request_has_an_ok_from_every_rule():
    """Each rule speaks once and none refuses or warns."""
    made = plan()
    spoken = [rule for rule in RULES if rule not in ELSEWHERE]
    assert [(verdict.rule, verdict.level) for verdict in made.verdicts] == [(rule, "ok") for rule in spoken]
    assert made.manifest is not None


def test_one_bad_request_shows_all_its_problems():
    """Every rule that can refuse does so in the same answer, and nothing is sealed."""
    bad = without("transactions", "2026-01-01", "2026-01-04")
    bad["adjustments"] = replace(
        bad["adjustments"], partitions=bad["adjustments"].partitions | {"2026-01-05": PartitionSize(0, 0, 0)}
    )
    made = plan(
        ask(),
        product=replace(
            protected("30d", "2026-01-02..2026-01-03"),
            lineage_columns=("produced_by_run_id",),
        ),
        project=replace(REWOUND, limits=Limits(2, 1, 1, "0.0000001")),
        inputs=bad,
        code=replace(CODE, git_dirty=True),
        now=NOW - timedelta(days=45),
        active_runs=(OTHER,),
        unknown_runs=("bf-20260214-daily-7f3a21c0",),
        is_first_run=True,
        target=replace(TARGET, properties={}),
    )
    found = {rule: levels(made, rule) for rule in RULES if rule not in ELSEWHERE}
    assert found == {
        "range": ["refuse"],
        "recent": ["refuse"],
        "locked": ["refuse"],
        "source-missing": ["refuse"],
        "source-retention": ["warn"],
        "empty": ["refuse"],
        "overlap": ["refuse"],
        "ledger": ["refuse"],
        "rows": ["refuse"],
        "bytes": ["refuse"],
        "cost": ["refuse"],
        "streaming-readers": ["refuse"],
        "consumers": [],
        "dirty-tree": ["warn"],
        "schema": ["refuse"],
        "live-retries": ["warn"],
    }
    assert (made.manifest, made.content, made.parts, made.run_id) == (None, b"", {}, "")


CASES = {
    "range": {"project": replace(PROJECT, limits=Limits(3))},
    "recent": {"product": protected("30d"), "now": NOW - timedelta(days=45)},
    "locked": {"product": protected("0d", "2026-01-02")},
    "source-missing": {"inputs": without("transactions", "2026-01-03")},
    "empty": {
        "inputs": INPUTS
        | {
            "adjustments": replace(
                INPUTS["adjustments"],
                partitions=INPUTS["adjustments"].partitions | {"2026-01-02": PartitionSize(0, 9, 1)},
            )
        }
    },
    "overlap": {"active_runs": (OTHER,)},
    "ledger": {"unknown_runs": ("bf-20260214-daily-7f3a21c0",), "is_first_run": True},
    "rows": {"project": replace(PROJECT, limits=Limits(max_rows=10))},
    "bytes": {"project": replace(PROJECT, limits=Limits(max_bytes=10))},
    "cost": {"project": replace(PROJECT, limits=Limits(max_usd="0.0001"), core_hour_usd="5")},
    "streaming-readers": {"project": REWOUND},
    "dirty-tree": {"code": replace(CODE, git_dirty=True)},
    "live-retries": {"target": replace(TARGET, properties={})},
}


@pytest.mark.parametrize("rule", CASES)
def test_a_named_override_sets_one_rule_aside_and_is_sealed(rule: str):
    """The verdict stays visible with its reason, the manifest carries the override, other rules still hold."""
    before = plan(**CASES[rule])
    assert levels(before, rule)[0] in ("refuse", "warn")
    made = plan(ask(overrides=(Override(rule, "agreed with Bo"),)), **CASES[rule])
    assert [(v.level, v.override) for v in made.verdicts if v.rule == rule] == [("warn", "agreed with Bo")]
    assert made.manifest is not None
    assert made.manifest.overrides == (Override(rule, "agreed with Bo"),)
    assert [v for v in made.verdicts if v.rule != rule] == [v for v in before.verdicts if v.rule != rule]


REFUSING = {rule: case for rule, case in CASES.items() if rule not in ("dirty-tree", "live-retries")}


@pytest.mark.parametrize("rule", [*REFUSING, "append", "schema"])
def test_every_refusal_says_what_to_look_at_or_to_type_first(rule: str):
    """A named override is the last way out, never the only one that a person is told."""
    more = {
        "append": {"product": replace(PRODUCT, publish=replace(PRODUCT.publish, mode="append"))},
        "schema": {"product": replace(PRODUCT, target=replace(PRODUCT.target, key=("nope",)))},
    }
    made = plan(**(REFUSING | more)[rule])
    refused = [verdict for verdict in made.verdicts if verdict.level == "refuse"]
    assert refused
    assert all(verdict.look for verdict in refused)
    assert not any("--override" in line for verdict in refused for line in verdict.look)


def refusals(made: Plan) -> list[GuardrailResult]:
    return [verdict for verdict in made.verdicts if verdict.level == "refuse"]


def possible(made: Plan, most: int = 180) -> str | None:
    """The command that plans what no rule refuses."""
    return format_possible_plan(made.request, Grain.DAY, made.partitions, most, refusals(made))


def test_an_overlap_names_the_run_its_state_and_the_command_that_replaces_it():
    """The state is in the verdict; the hint looks at the run first and then supersedes it."""
    made = plan(ask(partitions="2026-01-01..2026-01-03"), active_runs=(OTHER,))
    assert message(made, "overlap") == "run bf-1 (running) holds 2026-01-02 … 2026-01-03"
    assert [verdict.look for verdict in refusals(made)] == [("errata status bf-1",)]
    assert possible(made) == (
        "errata plan fin.daily_revenue --partitions 2026-01-01..2026-01-03 --reason 'FX bug FIN-231' --supersede bf-1"
    )


def test_of_two_runs_in_the_way_neither_is_superseded_silently():
    """A plan takes the place of one run; with two of them it leaves their partitions out."""
    other = replace(OTHER, run_id="bf-2", partitions=frozenset({"2026-01-05"}))
    made = plan(active_runs=(OTHER, other))
    assert possible(made) == (
        "errata plan fin.daily_revenue --partitions 2026-01-01,2026-01-04,2026-01-06..2026-01-07 "
        "--reason 'FX bug FIN-231'"
    )


def test_a_missing_source_names_the_pattern_and_the_nearest_directory():
    """The person sees where was searched and what is there, and can plan the days that exist."""
    inputs = without("transactions", "2026-01-03")
    miss = NearMiss("raw/day={day}/*.parquet", "raw", ("day=2026-01-01", "day=2026-01-02"))
    inputs["transactions"] = replace(inputs["transactions"], near_miss=miss)
    made = plan(ask(partitions="2026-01-02..2026-01-03"), inputs=inputs)
    assert "missing: 2026-01-03; searched raw/day={day}/*.parquet" in message(made, "source-missing")
    assert refusals(made)[0].look == (
        "look at the source first: the nearest directory, raw, has day=2026-01-01, day=2026-01-02",
    )
    assert possible(made) == "errata plan fin.daily_revenue --partitions 2026-01-02 --reason 'FX bug FIN-231'"


def test_the_suggested_plan_passes_every_rule_that_refused():
    """Too many days, some missing, some locked, a run in the way: one command avoids all of them, and works."""
    facts = {
        "product": protected("0d", "2026-01-07"),
        "project": replace(PROJECT, limits=Limits(3)),
        "inputs": without("transactions", "2026-01-01", "2026-01-04"),
        "active_runs": (OTHER,),
    }
    made = plan(**facts)
    assert {verdict.rule for verdict in refusals(made)} == {"range", "locked", "source-missing", "overlap"}
    suggested = possible(made, most=3)
    assert suggested is not None
    words = shlex.split(suggested)
    listed, run = words[words.index("--partitions") + 1], words[words.index("--supersede") + 1]
    assert not plan(ask(partitions=listed, supersede=run), **facts).is_refused


@pytest.mark.parametrize("rule", ["cost", "streaming-readers"])
def test_no_plan_is_suggested_where_none_would_pass(rule: str):
    """A limit on money or a stream does not go away with fewer partitions that we could name."""
    assert possible(plan(**CASES[rule])) is None


@pytest.mark.parametrize("price", ["0", "0.00"])
def test_a_cost_cap_without_a_price_is_refused(price: str):
    """At a price of nothing every run is free, so the cap would hold nobody back."""
    made = plan(project=replace(PROJECT, limits=Limits(max_usd="50"), core_hour_usd=price))
    (verdict,) = [verdict for verdict in made.verdicts if verdict.rule == "cost"]
    assert verdict.level == "refuse"
    assert f"limits.max_usd is 50 and price.core_hour_usd is {price}" in verdict.message
    assert levels(plan(project=replace(PROJECT, limits=Limits(), core_hour_usd=price)), "cost") == ["ok"]


def test_an_override_of_another_rule_does_not_help():
    """Setting one rule aside leaves the refusal of another."""
    made = plan(ask(overrides=(Override("recent", "why"),)), **CASES["locked"])
    assert made.is_refused
    assert (levels(made, "recent"), levels(made, "locked")) == (["ok", "warn"], ["refuse"])


def test_an_override_that_was_not_needed_is_reported_and_not_sealed():
    """The manifest holds only what set something aside."""
    made = plan(ask(overrides=(Override("range", "why"),)))
    assert levels(made, "range") == ["ok", "warn"]
    assert made.manifest is not None
    assert made.manifest.overrides == ()


@pytest.mark.parametrize(
    "more,said",
    [
        (
            {"product": replace(PRODUCT, lineage_columns=("produced_by_run_id",))},
            "ALTER TABLE lake.fin.daily_revenue ADD",
        ),
        ({"product": replace(PRODUCT, target=replace(PRODUCT.target, key=("nope",)))}, "key columns nope"),
        ({"target": replace(TARGET, unreadable_values=("EU",))}, "'EU'"),
        ({"product": replace(PRODUCT, target=replace(PRODUCT.target, column="nope"))}, "no column nope"),
        ({"inputs": INPUTS | {"adjustments": replace(INPUTS["adjustments"], problem="no column x")}}, "no column x"),
    ],
)
def test_a_schema_that_does_not_fit_cannot_be_set_aside(more: dict[str, object], said: str):
    """No run could survive it, so an override is refused as well."""
    made = plan(ask(overrides=(Override("schema", "why"),)), **more)
    assert made.is_refused
    assert said in message(made, "schema")
    assert "cannot set this aside" in message(made, "schema")


def test_days_of_another_zone_need_a_date_column():
    """``days(ts)`` counts UTC days; a date column may mean any zone."""
    elsewhere = replace(PRODUCT, target=replace(PRODUCT.target, zone="Europe/Berlin"))
    columns = tuple(replace(c, type="timestamptz") if c.name == "business_date" else c for c in TARGET.columns)
    assert plan(product=elsewhere).manifest is not None
    assert "Europe/Berlin" in message(plan(product=elsewhere, target=replace(TARGET, columns=columns)), "schema")


def test_recent_looks_at_when_a_partition_closed():
    """A day closes at its end: protected until that is ``recent`` ago, to the moment."""
    request = ask(partitions="2026-02-27")
    inputs = {
        name: replace(facts, partitions=facts.partitions | {"2026-02-27": PartitionSize(1, 1, 1)})
        if not facts.whole
        else facts
        for name, facts in INPUTS.items()
    }
    midnight = NOW.replace(hour=0)
    assert levels(
        plan(request, product=protected("1d"), inputs=inputs, now=midnight - timedelta(seconds=1)), "recent"
    ) == ["refuse"]
    assert levels(plan(request, product=protected("1d"), inputs=inputs, now=midnight), "recent") == ["ok"]


def test_missing_look_back_warns_and_missing_scope_refuses():
    """What is only read for warm-up may be short; what is published may not. Both name dates, folded."""
    short = replace(PRODUCT, inputs=(replace(PRODUCT.inputs[1], lookback="3d"),))
    inputs = {"adjustments": without("adjustments", "2026-01-01", "2026-01-02")["adjustments"]}
    made = plan(ask(partitions="2026-01-04"), product=short, inputs=inputs)
    assert levels(made, "source-missing") == ["warn"]
    assert "2026-01-01 … 2026-01-02" in message(made, "source-missing")
    assert made.manifest is not None
    refused = plan(ask(partitions="2026-01-02..2026-01-04"), product=short, inputs=inputs)
    assert levels(refused, "source-missing") == ["refuse", "warn"]


def test_retention_is_named_when_the_source_begins_later():
    """Missing partitions older than anything the source still has are probably gone for good."""
    inputs = without("transactions", *DAYS[:3])
    assert "begins at 2026-01-04; 2026-01-01 … 2026-01-03" in message(plan(inputs=inputs), "source-retention")
    assert levels(plan(inputs=without("transactions", "2026-01-03")), "source-retention") == ["ok"]


def test_overlap_is_by_table_and_partition_and_spares_the_superseded_run():
    """Another table, other days, or the run this one replaces do not stand in the way."""
    elsewhere = replace(OTHER, table="lake.fin.other")
    later = replace(OTHER, partitions=frozenset({"2026-01-20"}))
    assert levels(plan(active_runs=(elsewhere, later)), "overlap") == ["ok"]
    assert levels(plan(active_runs=(OTHER,)), "overlap") == ["refuse"]
    assert levels(plan(ask(supersede="bf-1"), active_runs=(OTHER,)), "overlap") == ["ok"]


def test_a_partition_the_table_does_not_have_yet_is_a_gap_to_fill():
    """Said in the plan, not refused."""
    target = replace(TARGET, partitions={day: TARGET.partitions[day] for day in DAYS if day != "2026-01-03"})
    made = plan(target=target)
    assert made.new_partitions == ("2026-01-03",)
    assert "1 not in the table yet: 2026-01-03" in message(made, "range")
    assert made.manifest is not None


def test_partitions_by_value_have_no_recent_ones():
    """Rules about time do not apply to them."""
    field = TARGET.partition_field
    assert field is not None
    regional = replace(
        PRODUCT,
        target=replace(PRODUCT.target, grain=Grain.VALUE),
        inputs=(Input("fx_rates", table="lake.ref.fx_rates"),),
        protect=replace(PRODUCT.protect, recent="9d"),
    )
    made = plan(ask(partitions="EU"), product=regional, inputs={"fx_rates": INPUTS["fx_rates"]})
    assert levels(made, "recent") == ["ok"]


def test_unknown_rows_cannot_pass_a_limit_silently():
    """File inputs are not opened, so a row limit becomes a warning."""
    made = plan(project=replace(PROJECT, limits=Limits(max_rows=10**9)))
    assert levels(made, "rows") == ["warn"]
    assert Decimal(made.estimate.usd) >= 0


def test_a_scattered_scope_makes_no_endless_verdict():
    """Verdicts are kept in the audit for good: ranges are named, and after a dozen they are counted."""
    names = tuple(from_ordinal(Grain.HOUR, n) for n in range(0, 40_000, 2))
    hourly = replace(PRODUCT, target=replace(PRODUCT.target, grain=Grain.HOUR))
    facts = {name: replace(found, partitions={}, oldest=None) for name, found in INPUTS.items()}
    made = plan(ask(partitions=names), product=hourly, inputs=facts)
    assert "20,000 of 20,000 partitions missing" in message(made, "source-missing")
    assert "and 19,988 more" in message(made, "source-missing")
    assert max(len(verdict.message) for verdict in made.verdicts) < 500


@pytest.mark.parametrize("version,told", [(2, False), (3, True)])
def test_a_plan_for_a_table_with_row_lineage_says_that_rows_get_new_ids(version: int, told: bool):
    """Format 3 gives every row an id; neither a publication nor its rollback can keep it."""
    made = plan(target=replace(TARGET, format_version=version))
    assert any("_row_id" in verdict.message for verdict in made.verdicts) == told
    assert not made.is_refused
