"""The faults that a SQL catalog has, at each kind of commit: a connection that breaks, a database that is locked."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import pytest

from catalogs.stories import STORIES, Story
from catalogs.test_fault_matrix import assert_sound, assert_survives_expiry
from errata.failpoints import arm
from support.commit_proxy import CatalogCommitProxy, Loss
from support.lakes import Lake, postgres_lake, sqlite_lake
from support.postgres import PostgresServer
from support.world import World

pytestmark = pytest.mark.slow

BUSY_SECONDS = 33
"""Longer than anyone waits for a lock: 30 s here and in the JVM."""


@pytest.fixture
def sql_proxies() -> list[CatalogCommitProxy]:
    """The proxies of this test's lakes."""
    return []


@pytest.fixture
def make_lake(
    request: pytest.FixtureRequest, sql_proxies: list[CatalogCommitProxy], tmp_path: Path
) -> Iterator[Callable[[Path], Lake]]:
    """PostgreSQL behind a proxy, or SQLite for the tests of locks."""
    if "point" in request.fixturenames:
        yield sqlite_lake
        return
    database: PostgresServer = request.getfixturevalue("catalog_database")
    with ExitStack() as stack:

        def behind_proxy(root: Path) -> Lake:
            name = f"{tmp_path.name}_faults".lower()[-60:]
            database.create_database(name)
            sql_proxies.append(stack.enter_context(CatalogCommitProxy(database.port)))
            return postgres_lake(root, database.url(name, port=sql_proxies[-1].port))

        yield behind_proxy


@pytest.mark.parametrize("loss", ["before", "after", "late"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_correction_gets_through_with_a_broken_connection_at_each_kind_of_commit(
    make_world: Callable[..., World], sql_proxies: list[CatalogCommitProxy], tmp_path: Path, story: Story, loss: Loss
) -> None:
    """PostgreSQL never saw the commit, did it and could not say so, or does it when everyone has stopped waiting."""
    telling = story.begin(make_world, tmp_path)
    for step in story.steps:
        with sql_proxies[0].faulty(loss, *step.changes) as hits:
            step.carry_on(telling)
        assert set(hits) == set(step.changes), f"{step.name} did not make all of these changes"
        time.sleep(1 if loss == "late" else 0)  # until the late one is there
        assert_sound(telling, step)
    assert_survives_expiry(telling, step)


@pytest.mark.parametrize(
    "name, step, point",
    [
        ("replace", "plan", "plan.after_record"),
        ("replace", "run", "run.after_start"),
        ("replace", "run", "stage.before_commit"),
        ("replace", "validate", "candidate.after_intent"),
        ("replace", "publish", "publish.before_commit"),
        ("replace", "rollback", "rollback.before_commit"),
        ("empty", "run", "run.after_start"),
        ("corrections", "publish", "corrections.before_commit"),
        ("corrections", "rollback", "rollback.after_record"),
        ("versions", "publish", "publish.after_record"),
        ("swap view", "rollback", "rollback.after_record"),
        ("quarantine", "run", "chunk.after_claim"),
        ("erased", "erase", "erase.before_add"),
        ("new columns", "run", "run.after_start"),
        ("new columns", "publish", "publish.before_commit"),
        ("rewrite", "publish", "publish.after_intent"),
        ("rewrite", "rollback", "rollback.after_intent"),
        ("dark", "dark", "dark.after_intent"),
        ("dark", "dark", "dark.after_tag"),
        ("live wins", "rebase", "rebase.after_record"),
    ],
)
def test_a_catalog_that_is_locked_for_long_is_a_lost_try(
    make_world: Callable[..., World], tmp_path: Path, name: str, step: str, point: str
) -> None:
    """SQLITE_BUSY: somebody holds the catalog's database for longer than anyone waits; the command, or the same
    command again, goes on."""
    story = next(one for one in STORIES if one.name == name)
    telling = story.begin(make_world, tmp_path)
    for one in story.steps:
        if one.name != step:
            one.carry_on(telling)
            continue
        with _Holder(telling.world.root / ".errata/catalog.db") as holder, arm(point, holder.hold_once):
            one.carry_on(telling)
        assert holder.held
        assert_sound(telling, one)
        break
    assert_survives_expiry(telling, one)


class _Holder:
    """Somebody who takes the write lock of a SQLite database, once, and keeps it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._thread = threading.Thread(target=self._hold)
        self._locked = threading.Event()
        self.held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.held:
            self._thread.join()

    def hold_once(self) -> None:
        """From now on for longer than anyone waits; the second time nothing."""
        if not self.held:
            self.held = True
            self._thread.start()
            assert self._locked.wait(10)

    def _hold(self) -> None:
        with closing(sqlite3.connect(self._database, isolation_level=None, timeout=10)) as database:
            database.execute("BEGIN IMMEDIATE")
            self._locked.set()
            time.sleep(BUSY_SECONDS)
            database.execute("ROLLBACK")
