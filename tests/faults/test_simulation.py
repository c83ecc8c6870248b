"""Ledger, workers, publishers, live writers and faults under one seed: the invariants hold, and every run ends."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from errata.ledger import Ledger
from faults.simulated_clock import Clock
from faults.simulation import LATER, Ground, World, approved_ground, simulate, validated_ground
from faults.simulation_checks import violations
from support.chaos import amount
from support.memory import in_memory

SEEDS = amount("SEEDS", 2000)
FIRST = amount("SEED", 0)
IN_CI = range(46, 62)
"""Few histories, in which every fault happens and as much is published as in twice as many others."""
FREQUENT = {
    "live delete": {"live delete": 0.02},
    "main set back": {"main set back": 0.1},
    "ref dropped": {"ref dropped": 0.7},
    "no clear answer": {"no clear answer": 0.4, "held back": 0.6},
    "sent twice": {"sent twice": 0.7},
    "parents cleared": {"parents cleared": 1.0, "live delete": 0.05},
    "column filled": {"column filled": 0.1, "parents cleared": 0.5},
    "clock ahead": {"clock ahead": 0.1},
}
OF_ONE = range(8, 13)
"""Few histories, in which something is published whichever fault is frequent, and planted bugs are noticed."""


HELD = range(70, 80)
"""Few histories in which readers ask a ready table."""
OF_WAVES = range(70, 89)
"""Few histories with waves, in which some are taken back."""


@pytest.fixture(scope="module")
def grounds() -> Iterator[tuple[Ground, ...]]:
    """Two beginnings, in memory where there is any: each step is a commit that waits for its disk."""
    with tempfile.TemporaryDirectory(prefix="errata-sim-", dir=in_memory()) as made:
        approved = approved_ground(Path(made) / "approved.db")
        # publishing is where there is most to lose
        yield (approved, *[validated_ground(approved, Path(made) / "validated.db")] * 2)


@pytest.fixture(scope="module")
def waved() -> Iterator[tuple[Ground, ...]]:
    """The same with waves: every chunk is one."""
    with tempfile.TemporaryDirectory(prefix="errata-sim-", dir=in_memory()) as made:
        approved = approved_ground(Path(made) / "approved.db", is_waved=True)
        yield (approved, *[validated_ground(approved, Path(made) / "validated.db")] * 2)


def run_seed(grounds: tuple[Ground, ...], seed: int, *, is_held: bool = False, **often: float) -> World:
    """One history; a failure prints its trace."""
    ground = grounds[seed % len(grounds)]
    database = Path(shutil.copy(ground.database, ground.database.with_name(f"{seed}.db")))
    clock, trace = Clock(), list[str]()
    with (
        clock.under_sqlite(),
        Ledger.open(f"sqlite:///{database}", create=False) as ledger,
        closing(sqlite3.connect(database)) as rows,
    ):
        try:
            world = simulate(ledger, clock, ground, seed, rows, trace, often, is_held=is_held)
            found = violations(world, rows)
            assert not found, "\n".join(found)
        except BaseException:
            print("\n".join([f"seed {seed}", *trace]))  # noqa: T201  to be read by whoever repeats it
            raise
    for file in database.parent.glob(f"{seed}.db*"):
        file.unlink()
    return world


def several(grounds: tuple[Ground, ...], seeds: range, *, is_held: bool = False) -> Counter[str]:
    """Many histories, and what happened in them."""
    figures: Counter[str] = Counter()
    for seed in seeds:
        figures.update(run_seed(grounds, seed, is_held=is_held).figures)
    print(f"\n{len(seeds)} seeds from {seeds.start}: {dict(sorted(figures.items()))}")  # noqa: T201
    return figures


def test_the_invariants_hold_in_simulated_histories(grounds: tuple[Ground, ...]) -> None:
    """Every fault happened, publications landed, were refused and were taken back; nothing was lost or doubled."""
    figures = several(grounds, IN_CI)
    expected = {"killed before", "killed after", "frozen", "failed", "answer lost", "held back", "late commit refused"}
    expected |= {"ledger put back", "live delete", "main set back", "ref dropped", "no clear answer", "sent twice"}
    expected |= {"parents cleared", "column filled", "clock ahead"}
    assert not expected - set(figures), "the histories are too tame to prove anything"
    assert figures["publish committed"] >= len(IN_CI)
    assert figures["rollback committed"] >= 1


def test_the_invariants_hold_in_simulated_histories_of_waves(waved: tuple[Ground, ...]) -> None:
    """Waves are judged and published while others are computed, among the same faults."""
    figures = several(waved, OF_WAVES)
    assert figures["publish committed"] >= len(OF_WAVES)
    assert figures["rollback committed"] >= 1


@pytest.mark.parametrize("fault", FREQUENT, ids=lambda fault: fault.replace(" ", "-"))
def test_the_invariants_hold_where_one_fault_is_frequent(grounds: tuple[Ground, ...], fault: str) -> None:
    """Faults of the table that are rare by chance, each in histories of publishing that are full of it."""
    figures: Counter[str] = Counter()
    for seed in OF_ONE:
        figures.update(run_seed(grounds[1:], seed, **FREQUENT[fault]).figures)
    assert figures[fault]
    assert figures["publish committed"] >= 1


def test_nothing_lands_in_simulated_histories_while_readers_are_told_that_it_is_ready(
    grounds: tuple[Ground, ...],
) -> None:
    """Publishers hold readers, others write the ready table at the same time; its commits are lost and come late."""
    figures = several(grounds, HELD, is_held=True)
    assert {"late commit refused", "held back", "killed after"} <= set(figures)
    assert figures["publish committed"] >= len(HELD)


def test_a_seed_is_a_history(grounds: tuple[Ground, ...]) -> None:
    """The same seed is the same history, so that a failure can be looked at again."""
    assert run_seed(grounds, 7).trace == run_seed(grounds, 7).trace


@pytest.mark.parametrize("seed", [899])
def test_histories_that_went_wrong_once_do_not_again(grounds: tuple[Ground, ...], seed: int) -> None:
    """899: a rollback of two publications, of which the owner had taken back the second with main."""
    run_seed(grounds, seed, **dict.fromkeys(LATER, 0.0))


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_the_invariants_hold_in_many_simulated_histories(grounds: tuple[Ground, ...]) -> None:
    """CHAOS_SEEDS of them."""
    figures = several(grounds, range(FIRST, FIRST + SEEDS))
    assert figures["late commit lands"]
    assert figures["late commit refused"]
    assert figures["landed and told a conflict"]


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_nothing_lands_in_many_simulated_histories_while_readers_are_told_that_it_is_ready(
    grounds: tuple[Ground, ...],
) -> None:
    """CHAOS_SEEDS of them."""
    figures = several(grounds, range(FIRST, FIRST + SEEDS), is_held=True)
    assert figures["late commit lands"]


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_the_invariants_hold_in_many_simulated_histories_of_waves(waved: tuple[Ground, ...]) -> None:
    """CHAOS_SEEDS of them."""
    figures = several(waved, range(FIRST, FIRST + SEEDS))
    assert figures["late commit lands"]
    assert figures["late commit refused"]
    assert figures["rollback committed"]
