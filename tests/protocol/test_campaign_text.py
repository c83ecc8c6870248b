"""Campaigns on the command line: the text that people read, and the JSON that programs read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.cli.render.campaign import render_campaign_plan
from errata.testing.memory_engines import MemoryEngines
from errata.wiring import build_client, open_workspace
from support.graph_world import PRODUCTS, GraphWorld

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def errata(tmp_path: Path) -> Iterator[Run]:
    """Types a command in a project of four products whose last hour of 1 February is wrong."""
    root = tmp_path / "graph"
    root.mkdir()
    world = GraphWorld.make(root)
    world.change("2026-02-01T23:00", 1000)

    def open_project(_directory: Path, **options: Any) -> Any:
        def build(project: Any, ledger: Any) -> MemoryEngines:
            return MemoryEngines(project, ledger, world.lake, world.transforms)

        return build_client(open_workspace(root, build_engines=build, now=world.lake.clock, **options))

    def run(person: str, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        told = CliEnvironment(open_project=open_project, out=out, err=io.StringIO(), interactive=False, width=110)
        return main(("--as", person, *arguments), world=told), out.getvalue()

    yield run
    world.client.close()


def plan(errata: Run) -> dict[str, Any]:
    """A campaign, approved."""
    code, out = errata(
        "ana", "--json", "plan", "ops.hourly", "--partitions", "2026-02-01T23", "--cascade", "--reason", "late"
    )  # fmt: skip
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    assert errata("bo", "approve", found["campaign_id"], "--digest", found["campaign_digest"])[0] == 0
    return found


def test_json_has_the_promised_names(errata: Run) -> None:
    """`plan --cascade`, `run CAMPAIGN` and `status CAMPAIGN`, as programs read them."""
    found = plan(errata)
    assert {"product": "ops.daily", "partitions": ["2026-02-01"], "after": ["ops.hourly"]}.items() <= (
        found["members"][1].items()
    )
    for command in ("run", "status"):
        code, out = errata("ana", "--json", command, found["campaign_id"])
        members = json.loads(out)["members"]
        assert code == 0
        assert [one["state"] for one in members] == ["validated", "waiting", "waiting", "waiting"]
        assert members[0]["run_id"].startswith("bf-")
        assert members[1]["run_id"] is None
    listed = json.loads(errata("ana", "--json", "status")[1])
    assert [one["campaign_id"] for one in listed["campaigns"]] == [found["campaign_id"]]
    assert {one["product"] for one in listed["reserved"]} == {"ops.daily", "ops.monthly", "ops.rolling"}


def test_a_plan_shows_how_each_member_is_published(tmp_path: Path) -> None:
    """Waves, new columns and who lets it out are part of what people approve."""
    rolling = PRODUCTS["rolling"].replace("grain: day}}", "grain: day}, add_columns: {note: string}}")
    waves = "publish: {waves: {size: 1, pause: 5min, release: none}, manual: false}\n"
    world = GraphWorld.make(tmp_path, products={"rolling": rolling + waves})
    world.change("2026-02-01T23:00", 1000)
    view = world.client.plan_campaign("ops.hourly", partitions="2026-02-01T23", reason="late", as_="ana")
    hourly, rolling_view = view.members[0], view.members[-1]
    assert (hourly.manual, hourly.waves, hourly.new_columns) == (True, None, {})
    assert rolling_view.waves is not None
    assert rolling_view.waves["waves"] == [["2026-02-02"], ["2026-02-01"]]
    assert (rolling_view.manual, rolling_view.new_columns) == (False, {"note": "string"})
    text = "\n".join(render_campaign_plan(view, 160))
    assert "in 2 waves of 1 partition, newest first, 5min apart at least" in text
    assert "note: NULL in the partitions of later waves until they go" in text
    assert "note string   new, visible with the publication" in text
    assert "lake.ops.rolling   replace_partitions   by itself when the gate finds nothing" in text
    assert "lake.ops.hourly   replace_partitions   when it is released" in text
    world.client.close()


def test_status_is_a_tree_with_the_next_command(errata: Run) -> None:
    """Each member below the one that it reads, with its state and run."""
    campaign = plan(errata)["campaign_id"]
    lines = errata("ana", "run", campaign)[1].splitlines()
    assert lines[0] == f"{campaign}   open   ops.hourly"
    run_id = lines[4].split()[-1]
    assert lines[4:8] == [
        f"ops.hourly  2026-02-01T23  validated  {run_id}",
        "└── ops.daily  2026-02-01  waiting: for ops.hourly",
        "    ├── ops.monthly  2026-02  waiting: for ops.daily",
        "    └── ops.rolling  2026-02-01 … 2026-02-02  waiting: for ops.daily",
    ]
    assert lines[-1] == f"next: errata publish {run_id} --as bo"
    assert f"errata status {campaign}" in errata("bo", "publish", run_id)[1].splitlines()[-1]


def test_a_rollback_without_a_reason_only_shows(errata: Run) -> None:
    """What can go back, in which order, and the command that does it."""
    campaign = plan(errata)["campaign_id"]
    run_id = errata("ana", "run", campaign)[1].splitlines()[4].split()[-1]
    errata("bo", "publish", run_id)
    code, out = errata("bo", "rollback", campaign)
    assert code == 0
    assert "ops.hourly   2026-02-01T23   can go back" in out
    assert out.splitlines()[-1] == f'next: errata rollback {campaign} --as bo --reason "…"'
    assert errata("bo", "rollback", campaign, "--reason", "wrong")[0] == 0
    assert "rolled back" in errata("bo", "status", campaign)[1].splitlines()[0]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("plan", "ops.hourly", "--partitions", "2026-02-01T23", "--only", "ops.daily", "--reason", "x"), 2),
        (("rollback", "bf-1", "--leave", "ops.daily=x", "--reason", "x"), 2),
        (("rollback", "bf-1"), 2),
    ],
)
def test_options_of_campaigns_are_refused_elsewhere(errata: Run, arguments: tuple[str, ...], said: int) -> None:
    """They would otherwise be ignored."""
    assert errata("ana", *arguments)[0] == said
