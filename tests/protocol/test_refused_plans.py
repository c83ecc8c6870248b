"""A plan refused before any guardrail says what happened, that nothing was planned, and a command that works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import errata
from errata.errors import ErrataError
from support.memory_world import MemoryWorld
from support.terminal import paste, text
from support.world import PRODUCT_FILE, PROJECT

Make = Callable[..., MemoryWorld]
STATE = "nothing was planned; no table was touched"

RANGES = {
    "reversed": ("2026-01-03", "2026-01-01", "--from 2026-01-01 --to 2026-01-03"),
    "empty": ("2026-01-02", "2026-01-02", "--partitions 2026-01-02"),
    "an end that does not exist": ("2026-01-01", "2026-02-30", "--partitions 2026-01-01"),
    "a start in other words": ("1 January", "2026-01-02", "--partitions 2026-01-02"),
    "neither": ("yesterday", "today", None),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_wrong_range_is_answered_with_one_that_can_be_planned(make_world: Make, name: str) -> None:
    """Ends in the wrong order are turned; one that exists is kept; of none there is only the help."""
    start, end, scope = RANGES[name]
    world = make_world(days=3)
    code, said = text(world, f"errata plan fin.sales --from '{start}' --to '{end}' --reason doubled", "ana")
    told, _, hint = said.partition(" hint: ")
    assert (code, told.endswith(STATE)) == (2, True)
    assert world.client.status().runs == ()
    if scope is None:
        assert hint == f"errata -C {world.root} plan --help"
        return
    assert scope in hint
    assert paste(world, hint)[0] == 0
    assert len(world.client.status().runs) == 1


@pytest.mark.parametrize("partitions", ["2026-01-03..2026-01-01", "2026-13-01", ","])
def test_a_wrong_list_is_refused_with_the_state(make_world: Make, partitions: str) -> None:
    """For a plan and for a trial."""
    world = make_world(days=1)
    for line, help_ in (
        (f"plan fin.sales --partitions {partitions} --reason x", "plan"),
        (f"try fin.sales {partitions}", "try"),
    ):
        code, said = text(world, f"errata {line}", "ana")
        assert code == 2
        assert said.endswith(f"{STATE} hint: errata -C {world.root} {help_} --help")


CATALOGS = {
    "no file": ('{type: jdbc, uri: "sqlite:///none.db", warehouse: lake}', "catalog lake was not found"),
    "no server": ("{type: rest, uri: 'http://127.0.0.1:1'}", "catalog lake could not be opened"),
    "another catalog": (
        '{type: jdbc, uri: "sqlite:///empty.db", warehouse: lake}',
        "table lake.fin.sales was not found",
    ),
}


@pytest.mark.parametrize("name", CATALOGS)
def test_a_catalog_that_cannot_be_read_is_told_with_state_and_next_command(tmp_path: Path, name: str) -> None:
    """The doctor, or the check of the project files, says more; neither plan nor ref is left."""
    lake, said = CATALOGS[name]
    project = PROJECT.replace("LEDGER", "sqlite:///ledger.db").replace("CHUNK_BYTES", "1MiB").replace("STORAGE", "{}")
    for place, content in {
        "errata.yaml": project.replace("LAKE", lake), "products/sales.yaml": PRODUCT_FILE,
        "transforms/sales.py": "def build(ctx, raw): ...\n",
    }.items():  # fmt: skip
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(content, "utf-8")
    if "empty.db" in lake:
        from pyiceberg.catalog.sql import SqlCatalog

        SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/empty.db", warehouse=str(tmp_path / "lake")).close()
    with errata.open(str(tmp_path)) as client:
        with pytest.raises(ErrataError, match=said) as refused:
            client.plan("fin.sales", "2026-01-01", "2026-01-02", reason="doubled", as_="ana")
        assert refused.value.state
        assert refused.value.hint in ("errata doctor", "errata check")
        assert client.status().runs == ()
        assert client.doctor()
        assert client.check()
