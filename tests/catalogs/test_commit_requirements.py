"""What a publication relies on, it asks the catalog to hold it to: a ref that went in between is a lost try."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import ErrataError
from spark.test_rewrite import MERGE_ON_READ
from support.catalog_proxy import Fault, FaultyProxy
from support.ids import plain_ref
from support.lakes import Lake
from support.soundness import expire_with_java, spark_rows, unreadable
from support.world import TABLE, World

Make = Callable[..., World]
WATCHED = Fault("watched", "once", "first")
"""No fault at all: what the server said is written down."""


@pytest.fixture
def make_lake(behind_proxy: Callable[..., Lake]) -> Callable[..., Lake]:
    return behind_proxy


def asserted(proxy: FaultyProxy, world: World, kind: str, act: Callable[[], Any]) -> dict[str, int | None]:
    """The refs that the commit of this kind asserts, each where the table had it; act is the command."""
    had: dict[str, int] = {}

    def look() -> None:
        had.update({name: ref.snapshot_id for name, ref in world.table().metadata.refs.items()})

    with proxy.meanwhile(kind, look):
        act()
    sent = [json.loads(request.body) for request in proxy.changes if request.kind == kind]
    assert len(sent) == 1
    told = {r["ref"]: r["snapshot-id"] for r in sent[0]["requirements"] if r["type"] == "assert-ref-snapshot-id"}
    assert told == {name: had.get(name) for name in told}
    return {plain_ref(name): snapshot for name, snapshot in told.items()}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["whole files", "deleted rows", "shared files"])
def test_a_publication_and_a_rollback_assert_every_ref_they_rely_on(
    make_world: Make, proxies: list[FaultyProxy], shape: str
) -> None:
    """Main, the guard, the undo branch, where the files come from, and that neither of its tags is there yet."""
    options = {"deleted rows": {"properties": MERGE_ON_READ}, "shared files": {"spec": "", "days": 3}}
    world = make_world(**{"days": 2, **options.get(shape, {})})
    (proxy,) = proxies
    if shape == "deleted rows":
        world.sql(f"DELETE FROM {TABLE} WHERE day = date'{world.days[0]}' AND account = 'a0'")
    before = world.rows()
    run = world.to("validated", world.days[0] if shape == "shared files" else None)
    publishing = asserted(proxy, world, "publish", lambda: world.client.publish(run, as_="bo"))
    rolling = asserted(proxy, world, "rollback", lambda: world.client.rollback(run, reason="undo", as_="bo"))
    assert world.rows() == before
    for pub, told in ((f"errata_{run}-p1", publishing), (f"errata_{run}-r2", rolling)):
        relied_on = {"main", "errata_guard", f"{pub}_undo"}
        assert relied_on <= {name for name, snapshot in told.items() if snapshot is not None}
        assert {name for name, snapshot in told.items() if snapshot is None} == {f"{pub}_pre", f"{pub}_pub"}
    if shape != "shared files":  # those are staged beside the target
        assert f"errata_{run}_c1" in publishing
    else:
        assert f"errata_{run}-p1_rest1" in publishing
    assert f"errata_{run}-p1_undo" in rolling
    if shape != "whole files":
        assert f"errata_{run}-r2_rows1" in rolling


@pytest.mark.slow
@pytest.mark.parametrize("act", ["publish", "rollback"])
def test_files_that_a_tool_expired_on_the_way_to_the_server_never_get_into_main(
    make_world: Make, proxies: list[FaultyProxy], act: str
) -> None:
    """A tool drops the branches that hold them and expires: the server refuses the commit, and main is as before."""
    world = make_world(days=2)
    (proxy,) = proxies
    time.sleep(4)  # the age of main's head must not stand in for a touch of the refs
    run = world.to("validated" if act == "publish" else "published")
    dropped = {
        "publish": {f"errata_{run}", f"errata_{run}_c1"},
        "rollback": {f"errata_{run}-p1_undo", f"errata_{run}-p1_pre", f"errata_{run}_base"},  # all hold the old files
    }[act]
    before = world.rows()

    def tidy_up() -> None:
        for name, ref in world.table().metadata.refs.items():
            if plain_ref(name) in dropped:
                world.sql(f"ALTER TABLE {TABLE} DROP {ref.snapshot_ref_type.value} `{name}`")
        expire_with_java(world)

    commands: dict[str, Callable[[], Any]] = {
        "publish": lambda: world.client.publish(run, as_="bo"),
        "rollback": lambda: world.client.rollback(run, reason="undo", as_="bo"),
    }
    with proxy.meanwhile(act, tidy_up), proxy.faulty(WATCHED, act) as hits, pytest.raises(ErrataError) as refused:
        commands[act]()
    assert [hit.statuses for hit in hits] == [[409]]
    assert "main is unchanged" in f"{refused.value.state}"
    assert world.rows() == spark_rows(world) == before
    assert unreadable(world) == []
