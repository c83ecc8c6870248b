"""Models of dbt as the last steps of a campaign.

Most tests start a small program in the place of dbt, which compiles and builds like it; the slow ones start dbt itself
with DuckDB, from ``make setup-dbt``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errata.errors import Drifted, EngineError, NotFound, StateRefused, UsageError
from errata.views.campaign import CampaignPlanView, CampaignView
from support.graph_world import PRODUCTS, GraphWorld

DBT = Path(os.environ.get("ERRATA_DBT") or Path(__file__).parents[2] / ".tools/dbt/bin/dbt")
FAKE = """\
import json, os, pathlib, sys
arguments = sys.argv[1:]
place = pathlib.Path(arguments[arguments.index("--target-path") + 1])
model = pathlib.Path("models/fct_load.sql").read_text().replace("ENV", os.environ.get("DBT_SHARE", "1"))
(place / "compiled/analytics").mkdir(parents=True)
(place / "compiled/analytics/fct_load.sql").write_text(model)
found = {"metadata": {"at": os.getpid()}, "nodes": {"created_at": os.getpid()}}
(place / "manifest.json").write_text(json.dumps(found))
if arguments[0] == "build":
    with open("built.log", "a") as log:
        log.write(" ".join(arguments[: arguments.index("--target-path")]) + "\\n")
    if "broken" in model:
        sys.exit("Database Error")
    (place / "run_results.json").write_text(json.dumps({"results": [{"status": "success"}]}))
"""
MODEL = """\
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day', batch_size='day',
          begin='2026-01-30') }}
select day, amount, amount * ENV as share from {{ source('ops', 'daily') }}
"""
HOUR = "2026-02-01T23"
Make = Callable[..., GraphWorld]


def manifest(**config: Any) -> dict[str, Any]:
    """dbt's manifest with one model that reads the daily table."""
    given = {"materialized": "incremental", "incremental_strategy": "microbatch", "event_time": "day"} | config
    model = {
        "resource_type": "model", "name": "fct_load", "schema": "marts", "alias": "fct_load", "config": given,
        "relation_name": "marts.fct_load", "depends_on": {"nodes": ["source.a.ops.daily"]},
    }  # fmt: skip
    source = {"resource_type": "source", "name": "daily", "database": "lake", "schema": "ops", "identifier": "daily"}
    version = "https://schemas.getdbt.com/dbt/manifest/v12.json"
    return {
        "metadata": {"dbt_schema_version": version, "dbt_version": "1.10.0"},
        "nodes": {"model.a.fct_load": model}, "sources": {"source.a.ops.daily": source},
    }  # fmt: skip


@pytest.fixture
def make_graph(tmp_path: Path) -> Iterator[Make]:
    """Makes the four products with a project of dbt whose model reads the daily table."""
    made: list[GraphWorld] = []

    def make(*, command: str = "", found: dict[str, Any] | None = None, build: str = "fct_load") -> GraphWorld:
        root = tmp_path / "graph"
        (root / "analytics/models").mkdir(parents=True)
        (root / "analytics/models/fct_load.sql").write_text(MODEL)
        (root / "analytics/manifest.json").write_text(json.dumps(found or manifest()))
        (root / "dbt.py").write_text(FAKE)
        starts = command or f'["{sys.executable}", "{root}/dbt.py"]'
        dbt = f"dbt: {{manifest: analytics/manifest.json, project: analytics, build: [{build}], command: {starts}}}\n"
        itself = {name: text + "publish: {manual: false}\n" for name, text in PRODUCTS.items()}
        world = GraphWorld.make(root, products=itself, project=dbt)
        text = (root / "errata.yaml").read_text()
        world.write("errata.yaml", text.replace("limits:", "  cy: {roles: [operator, publisher]}\nlimits:"))
        world.change("2026-02-01T23:00", 1000)
        made.append(world)
        return world

    yield make
    for world in made:
        world.client.close()


def plan(world: GraphWorld) -> CampaignPlanView:
    """A campaign of the late hour, approved."""
    found = world.client.plan_campaign("ops.hourly", partitions=HOUR, reason="late", as_="ana")
    world.client.approve_campaign(found.campaign_id, digest=found.campaign_digest, as_="bo")
    return found


def run(world: GraphWorld, campaign: CampaignPlanView) -> CampaignView:
    """As far as it goes."""
    return world.client.run_campaign(campaign.campaign_id, publish=True, as_="cy")


def read_built(world: GraphWorld) -> list[str]:
    """How dbt was called to build."""
    log = world.root / "analytics/built.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_model_is_built_last_for_the_interval_of_what_it_reads(make_graph: Make) -> None:
    """The plan says that it cannot be undone; dbt runs once, and what it said is on record."""
    world = make_graph()
    campaign = plan(world)
    (step,) = campaign.dbt
    assert (step.after, step.start, step.end) == (("ops.daily",), "2026-02-01T00:00:00", "2026-02-02T00:00:00")
    assert any("cannot undo it" in note for note in campaign.notes)
    view = run(world, campaign)
    assert view.state == "done"
    assert {one.product: one.state for one in view.members}["fct_load"] == "built"
    interval = "--event-time-start 2026-02-01T00:00:00 --event-time-end 2026-02-02T00:00:00"
    assert read_built(world) == [f"build --select fct_load {interval}"]
    (done,) = world.workspace.ledger.campaigns.steps(campaign.campaign_id)
    assert json.loads(world.workspace.ledger.parts.get(done.detail))["results"] == [{"status": "success"}]
    run(world, campaign)
    assert len(read_built(world)) == 1
    assert world.workspace.ledger.audit.verify().ok


@pytest.mark.parametrize(
    "place, text, what",
    [
        ("models/fct_load.sql", MODEL.replace("amount *", "2 * amount *"), "compiled and project"),
        ("dbt_packages/utils/macros/m.sql", "{% macro m() %}{% endmacro %}", "packages"),
        ("", "", "compiled"),
    ],
)
def test_a_project_of_dbt_that_changed_since_the_approval_stops_its_step(
    make_graph: Make, monkeypatch: pytest.MonkeyPatch, place: str, text: str, what: str
) -> None:
    """Files, packages and variables of the environment are what was approved, or dbt does not start."""
    world = make_graph()
    campaign = plan(world)
    if place:
        (world.root / "analytics" / place).parent.mkdir(parents=True, exist_ok=True)
        (world.root / "analytics" / place).write_text(text)
    else:
        monkeypatch.setenv("DBT_SHARE", "3")
    view = run(world, campaign)
    told = {one.product: (one.state, one.told) for one in view.members}["fct_load"]
    assert told == ("drifted", f"dbt's {what} changed since the campaign was planned")
    assert view.exit_code == Drifted.exit_code
    assert not read_built(world)


def test_a_step_that_failed_is_built_again_with_the_same_interval(make_graph: Make) -> None:
    """Both attempts are on record; the others of the campaign are not touched."""
    world = make_graph()
    (world.root / "analytics/models/fct_load.sql").write_text(MODEL + "-- broken\n")
    campaign = plan(world)
    view = run(world, campaign)
    assert {one.product: one.state for one in view.members}["fct_load"] == "failed"
    assert view.exit_code == EngineError.exit_code
    run(world, campaign)
    first, second = read_built(world)
    assert first == second
    steps = world.workspace.ledger.campaigns.steps(campaign.campaign_id)
    assert [one.outcome for one in steps] == ["failed", "failed"]


def test_a_model_that_was_built_keeps_its_parents_unless_it_is_left(make_graph: Make) -> None:
    """Errata cannot take back what dbt built; a person decides that it stays."""
    world = make_graph()
    campaign = plan(world)
    run(world, campaign)
    with pytest.raises(StateRefused, match="fct_load: dbt built it, and Errata cannot undo it"):
        world.client.roll_back_campaign(campaign.campaign_id, reason="wrong", as_="bo")
    back = world.client.roll_back_campaign(
        campaign.campaign_id, leave={"fct_load": "built again tonight"}, reason="wrong", as_="bo"
    )
    assert [one.state for one in back.members] == ["left", *["rolled_back"] * 4]


@pytest.mark.parametrize(
    "found, said",
    [
        (manifest(incremental_strategy="append"), "strategy append"),
        (manifest(materialized="table"), "found table"),
        (manifest(event_time=None), "event_time none"),
    ],
)
def test_a_model_that_cannot_be_built_again_is_refused(make_graph: Make, found: dict[str, Any], said: str) -> None:
    """A repeat after a kill would add its rows twice."""
    world = make_graph(found=found)
    with pytest.raises(UsageError, match=said):
        plan(world)


def test_an_unknown_model_and_a_missing_dbt_are_refused(make_graph: Make) -> None:
    """Before anything is sealed."""
    world = make_graph(build="fct_lod")
    with pytest.raises(NotFound, match=r"dbt.build names fct_lod"):
        plan(world)
    text = (world.root / "errata.yaml").read_text()
    world.write("errata.yaml", text.replace("fct_lod", "fct_load").replace(sys.executable, "/nowhere/python"))
    with pytest.raises(EngineError, match="dbt could not be started"):
        plan(world)


@pytest.mark.slow
def test_dbt_itself_builds_the_corrected_day_and_no_other(make_graph: Make) -> None:
    """dbt-core with DuckDB, microbatch: the day is corrected, another day that changed meanwhile is not touched."""
    assert DBT.exists(), f"{DBT} is missing; make setup-dbt makes it, or ERRATA_DBT names another"
    world = make_graph(command=f'["{DBT}"]')
    project = world.root / "analytics"
    (project / "models/fct_load.sql").write_text(
        # with one thread, dbt waits for itself when batches are to run side by side
        MODEL.replace("* ENV", "/ 24").replace("begin=", "concurrent_batches=false, begin=")
    )
    (project / "models/sources.yml").write_text(
        "version: 2\nsources:\n  - {name: ops, schema: ops, tables: [{name: daily, config: {event_time: day}}]}\n"
    )
    (project / "dbt_project.yml").write_text(
        'name: analytics\nversion: "1.0"\nprofile: analytics\nflags: {send_anonymous_usage_stats: false}\n'
    )
    (project / "profiles.yml").write_text(
        "analytics: {target: dev, outputs: {dev: {type: duckdb, path: lake.duckdb, schema: marts}}}\n"
    )
    _load(world)
    _dbt(project, "build", "--event-time-start", "2026-01-30", "--event-time-end", "2026-02-03")
    before = _query(project, "select day, amount from marts.fct_load order by day")
    campaign = plan(world)
    for product in ("ops.hourly", "ops.daily"):
        world.client.run_campaign(campaign.campaign_id, as_="ana")
        member = next(o for o in world.client.campaign(campaign.campaign_id).members if o.product == product)
        world.client.publish(member.run_id, as_="bo")
    _load(world)
    _query(project, "update ops.daily set amount = -1 where day = date '2026-01-30'")
    view = run(world, campaign)
    assert view.state == "done", view.problems
    after = _query(project, "select day, amount from marts.fct_load order by day")
    assert [day for (day, amount), (_, old) in zip(after, before, strict=True) if amount != old] == ["2026-02-01"]
    (step,) = world.workspace.ledger.campaigns.steps(campaign.campaign_id)
    results = json.loads(world.workspace.ledger.parts.get(step.detail))
    assert [one["status"] for one in results["results"]] == ["success"]


def _dbt(project: Path, *arguments: str) -> None:
    subprocess.run([DBT, *arguments], cwd=project, check=True, capture_output=True, timeout=120)


def _query(project: Path, sql: str) -> list[list[Any]]:
    """Rows of DuckDB, read by dbt's own environment."""
    program = (
        "import duckdb, json, sys; c = duckdb.connect('lake.duckdb'); "
        "print(json.dumps([[str(v) for v in row] for row in c.execute(sys.argv[1]).fetchall()]))"
    )
    done = subprocess.run(
        [DBT.with_name("python"), "-c", program, sql], cwd=project, check=True, capture_output=True, text=True
    )
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def _load(world: GraphWorld) -> None:
    """Put the daily table into DuckDB, as its main is now."""
    rows = ", ".join(f"(date '{row['day']}', {row['amount']})" for row in world.rows("ops.daily"))
    for sql in (
        "create schema if not exists ops",
        f"create or replace table ops.daily as select * from (values {rows}) t(day, amount)",
    ):
        _query(world.root / "analytics", sql)
