"""Catalogs that keep no branches and tags: the doctor says so, check and plan refuse them, and nothing is left behind.

The server is real; what stands before it does what such catalogs do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.errors import Refused
from support.catalog_proxy import FaultyProxy
from support.lakes import Lake
from support.world import TABLE, World

Make = Callable[..., World]


@pytest.fixture
def make_lake(behind_proxy: Callable[[Path], Lake]) -> Callable[[Path], Lake]:
    """A REST catalog behind a proxy."""
    return behind_proxy


def main_only(content: bytes) -> bytes:
    """An answer in which a table has no ref but main."""
    if b'"refs"' not in content:
        return content
    told: Any = json.loads(content)
    metadata = told["metadata"]
    metadata["refs"] = {name: ref for name, ref in metadata["refs"].items() if name == "main"}
    return json.dumps(told).encode()


def without_refs(body: bytes) -> bytes:
    """A request in which no ref but main is set: the server never hears of it."""
    if b"set-snapshot-ref" not in body:
        return body
    told: Any = json.loads(body)
    told["updates"] = [one for one in told["updates"] if one.get("ref-name", "main") == "main"]
    return json.dumps(told).encode()


def forget(proxy: FaultyProxy, how: str) -> None:
    """From now on the catalog shows no refs, or drops them as they come."""
    if how == "hides":
        proxy.answers = main_only
    else:
        proxy.asks = without_refs


def tables(world: World) -> set[str]:
    return {row.tableName for row in world.sql("SHOW TABLES IN lake.fin")}


@pytest.mark.parametrize("how", ["hides", pytest.param("drops", marks=pytest.mark.slow)])
def test_a_plan_on_a_catalog_that_does_not_keep_its_tag_is_refused(
    make_world: Make, proxies: list[FaultyProxy], how: str
):
    """The tag was accepted and is not there: no run is left to approve, and main is as it was."""
    world = make_world(days=1)
    before = world.snapshot()
    forget(proxies[0], how)
    with pytest.raises(Refused, match=f"{TABLE}: the catalog accepted tag errata_.*_base and does not keep it") as no:
        world.plan()
    assert type(no.value) is Refused
    assert "no data was changed; run bf-" in (no.value.state or "")
    assert [run.state for run in world.client.status().runs] == ["cancelled"]
    assert world.snapshot() == before


def test_check_and_plan_see_without_writing_that_a_catalog_hides_refs(make_world: Make, proxies: list[FaultyProxy]):
    """The table's own metadata file has them; both say so at once, and nothing is recorded."""
    world = make_world(days=1)
    assert world.client.check() == ()
    world.sql(f"ALTER TABLE {TABLE} CREATE TAG monthly")
    forget(proxies[0], "hides")
    said = f"the catalog of {TABLE} does not show monthly, which the table has"
    (problem,) = world.client.check()
    assert (problem.file, problem.line is not None) == ("products/sales.yaml", True)
    assert said in problem.message
    for dry_run in (True, False):
        with pytest.raises(Refused, match=said):
            world.plan(dry_run=dry_run)
    assert world.client.status().runs == ()


def test_a_catalog_that_forbids_tags_is_a_warning_and_the_plan_stands(make_world: Make, proxies: list[FaultyProxy]):
    """No permission says nothing about what the catalog keeps."""
    world = make_world(days=1)
    proxies[0].forbids = lambda body: b"set-snapshot-ref" in body
    view = world.plan()
    assert view.state == "planned"
    (pin,) = [pin for pin in view.pins if pin["table"] == TABLE]
    assert pin["outcome"] == "not_pinned"
    assert "cannot be tagged: ForbiddenError" in pin["warning"]


@pytest.mark.parametrize("how", ["keeps", pytest.param("hides", marks=pytest.mark.slow), "drops"])
def test_the_doctor_tries_branches_and_tags_on_a_table_that_is_gone_afterwards(
    make_world: Make, proxies: list[FaultyProxy], how: str
):
    """What is kept is known from reading the table again, not from the answer to the commit."""
    world = make_world(days=1)
    before = tables(world)
    if how != "keeps":
        forget(proxies[0], how)
    checks = {check.name: check for check in world.client.doctor(deep=True)}
    found = checks["refs lake"]
    assert found.ok == (how == "keeps")
    kept = "branches and tags are kept with their retention" if found.ok else "not kept: branches, tags"
    assert found.found.startswith(kept)
    assert found.found.endswith("register_table works")
    assert tables(world) == before
    assert "refs lake" not in {check.name for check in world.client.doctor()}


def test_the_table_of_the_doctor_is_dropped_when_the_catalog_fails_in_between(
    make_world: Make, proxies: list[FaultyProxy]
):
    """The commit with refs is refused: that is the answer, and nothing is left."""
    world = make_world(days=1)
    before = tables(world)
    proxies[0].forbids = lambda body: b"probe_tag" in body
    found = {check.name: check for check in world.client.doctor(deep=True)}["refs lake"]
    assert not found.ok
    assert "not kept: branches, tags, their retention (ForbiddenError" in found.found
    assert tables(world) == before
