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
    "an end that does not exist": ("2026-01-01", "2026-02-30", "--from 2026-01-01 --to YYYY-MM-DD"),
    "a start in other words": ("1 January", "2026-01-02", "--from YYYY-MM-DD --to 2026-01-02"),
    "a start with another order": ("01.01.2026", "2026-01-02", "--from YYYY-MM-DD --to 2026-01-02"),
    "an hour": ("2026-01-01T10", "2026-01-03", "--from YYYY-MM-DD --to 2026-01-03"),
    "neither": ("yesterday", "today", "--from YYYY-MM-DD --to YYYY-MM-DD"),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_wrong_range_is_answered_with_the_whole_range(make_world: Make, name: str) -> None:
    """Ends in the wrong order are turned; an end that exists is kept, beside the form of the other: never less."""
    start, end, scope = RANGES[name]
    world = make_world(days=3)
    code, said = text(world, f"errata plan fin.sales --from '{start}' --to '{end}' --reason doubled", "ana")
    told, _, hint = said.partition(" hint: ")
    assert (code, told.endswith(STATE)) == (2, True)
    assert world.client.status().runs == ()
    assert scope in hint
    # a form is refused again: nobody plans it without filling it in
    assert paste(world, hint)[0] == (2 if "YYYY" in hint else 0)
    assert len(world.client.status().runs) == (0 if "YYYY" in hint else 1)


LISTS = {
    "2026-01-03..2026-01-01": "plan fin.sales --as ana --partitions 2026-01-01..2026-01-03",
    "2026-01-01,2026-13-01": "plan fin.sales --as ana --partitions 2026-01-01,YYYY-MM-DD",
    "2026-01-01..x": "plan fin.sales --as ana --partitions 2026-01-01..YYYY-MM-DD",
    ",": "plan fin.sales --as ana --partitions YYYY-MM-DD",
}


@pytest.mark.parametrize("partitions", LISTS)
def test_a_wrong_list_is_refused_with_the_state(make_world: Make, partitions: str) -> None:
    """For a plan, with the corrected list, and for a trial."""
    world = make_world(days=3)
    code, said = text(world, f"errata plan fin.sales --partitions {partitions} --reason x", "ana")
    told, _, hint = said.partition(" hint: ")
    assert (code, told.endswith(STATE)) == (2, True)
    assert LISTS[partitions] in hint
    assert paste(world, hint)[0] == (2 if "YYYY" in hint else 0)
    code, said = text(world, f"errata try fin.sales {partitions}", "ana")
    assert code == 2
    assert said.endswith(f"{STATE} hint: errata -C {world.root} try --help")


@pytest.mark.parametrize("given, lacks", [("--from 2026-01-01", "--to"), ("--to 2026-01-03", "--from")])
def test_half_a_range_is_refused_for_the_end_that_is_missing(make_world: Make, given: str, lacks: str) -> None:
    """The hint keeps the end that was given."""
    code, said = text(make_world(days=1), f"errata plan fin.sales {given} --reason x", "ana")
    assert (code, f"a range without {lacks} was refused" in said, given in said) == (2, True, True)


def test_an_overlap_with_two_runs_names_their_cancellation_before_the_override(make_world: Make) -> None:
    """A plan supersedes one run; the others have to give their partitions back."""
    world = make_world(days=2)
    runs = [world.client.plan("fin.sales", partitions=day, reason="first", as_="ana").id for day in world.days[:2]]
    with pytest.raises(ErrataError) as refused:
        world.client.plan("fin.sales", partitions=",".join(world.days[:2]), reason="both", as_="ana")
    hint = refused.value.hint or ""
    for run in runs:
        assert 0 < hint.index(f"errata cancel {run} --reason") < hint.index("override")


def test_a_partition_that_nobody_wrote_is_not_said_to_hold_something(make_world: Make) -> None:
    """`errata why` speaks of the live pipeline only where a commit wrote the partition."""
    world = make_world(days=1)
    said = world.client.why("lake.fin.sales", "2027-01-01").note
    assert said == "no run has ever published this partition, and no commit of the table wrote it"


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
        assert "errata doctor" in (refused.value.hint or "") or refused.value.hint == "errata check"
        assert client.status().runs == ()
        assert client.doctor()
        assert client.check()
