"""Corrections as a catalog sees them: which command makes which changes, and what main must show after each.

A change is named as ``support.commits`` names it. Every command is given until it is no longer refused, as a person
would; nothing else is ever done to the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from errata.errors import EngineError, ErrataError, Rebased
from errata.evidence.keys import generate_key_pair
from errata.failpoints import arm
from errata.model.refs import compare_view, quarantine_table
from spark import test_erasure, test_live_wins, test_modes, test_new_columns, test_quarantine
from support.clock import later
from support.world import PRODUCT, TABLE, World

__all__ = ["STORIES", "Step", "Story", "Telling"]

_TRIES = 6  # a command may meet a fault at each of its commits
Rows = list[tuple[Any, ...]]


@dataclass
class Telling:
    """A story under way: its world, its run, and what main held at the beginning."""

    story: Story
    world: World
    run: str = ""
    old: Rows = field(default_factory=list)
    live: int = 0
    """Rows that live jobs added meanwhile, outside the scope; their accounts begin with ``live``."""

    def rows(self) -> Rows:
        """Main by pyiceberg, without the rows of live jobs, which are all there."""
        return self.without_live(self.world.rows())

    def without_live(self, rows: Rows) -> Rows:
        """The rows that are not of live jobs; those of live jobs are all there."""
        kept = [row for row in rows if not str(row[1]).startswith("live")]
        assert len(rows) - len(kept) == self.live
        return kept

    def add_live(self) -> None:
        """One row of a live job, outside the scope, into whatever columns the table has by now."""
        more = ", null" * (len(self.world.table().schema().fields) - 6)
        values = f"(date'2026-03-01', 'live{self.live}', 1, bigint(1), null, null{more})"
        self.world.sql(f"INSERT INTO {TABLE} VALUES {values}")
        self.live += 1

    def right(self) -> Rows:
        """What main holds once this story's correction is published."""
        scope = self.story.scope(self.world)
        return sorted([*(row for row in self.old if row[0] not in scope), *self.world.expected(scope)])


@dataclass(frozen=True)
class Step:
    """One command; ``changes`` are those that faults are tried at, ``main`` is what main shows afterwards."""

    name: str
    act: Callable[[Telling], Any]
    changes: tuple[str, ...]
    main: Callable[[Telling], Rows] = lambda telling: telling.old
    shows: Callable[[Telling], None] = lambda _telling: None

    def carry_on(self, telling: Telling) -> list[ErrataError]:
        """The command until it is not refused; a refusal leaves main as it was. Answers the refusals."""
        before = telling.rows()
        refused: list[ErrataError] = []
        while (error := self._refused(telling)) is not None:
            refused.append(error)
            assert telling.rows() == before, f"{self.name} was refused and main has changed: {error.message}"
            assert len(refused) < _TRIES, f"{self.name} is refused each time: {error.message}"
        return refused

    def _refused(self, telling: Telling) -> ErrataError | None:
        try:
            self.act(telling)
        except ErrataError as error:
            return error
        return None


@dataclass(frozen=True)
class Story:
    """One correction from its plan to the end."""

    name: str
    steps: tuple[Step, ...]
    make: Callable[[Callable[..., World], Path], World]
    scope: Callable[[World], tuple[str, ...]] = lambda world: world.days

    def begin(self, make_world: Callable[..., World], place: Path) -> Telling:
        """A world in which nothing has happened yet."""
        world = self.make(make_world, place)
        return Telling(self, world, old=world.rows())


def _plan(telling: Telling) -> None:
    world, scope = telling.world, telling.story.scope(telling.world)
    plan = world.client.plan(PRODUCT, partitions=f"{scope[0]}..{scope[-1]}", reason="doubled", as_="ana")
    telling.run = plan.id
    assert [run.run_id for run in world.client.status().runs] == [plan.id]
    world.client.approve(plan.id, digest=plan.digest, as_="bo")


def _run(telling: Telling) -> None:
    client, run = telling.world.client, telling.run
    if client.status(run).state == "failed":
        client.retry(run, as_="ana")
    assert client.run(run, as_="ana").state == "staged"


def _validate(telling: Telling) -> None:
    assert telling.world.client.validate(telling.run, as_="ana").passed


def _broken_off(telling: Telling) -> None:
    """A publication that fails before its commit: it is closed behind a fence, now or by the next command."""

    def fail() -> None:
        raise EngineError("a failpoint raised here")

    with arm("publish.after_undo", fail), pytest.raises(ErrataError):
        telling.world.client.publish(telling.run, as_="bo")


def _publish(telling: Telling) -> None:
    assert telling.world.client.publish(telling.run, as_="bo").state == "published"


def _rollback(telling: Telling) -> None:
    assert telling.world.client.rollback(telling.run, reason="undo", as_="bo").state == "rolled_back"


def _cleanup(telling: Telling) -> None:
    telling.world.client.cleanup(as_="ana")
    # what is owed is paid, and nothing is left to remove
    assert telling.world.client.cleanup(as_="ana").removed == ()


def _nothing_of_it(telling: Telling) -> None:
    left = {ref for ref in telling.world.refs() if telling.run in ref and not ref.endswith(("_undo", "_pre", "_pub"))}
    assert not left


def _cancel(telling: Telling) -> None:
    assert telling.world.client.cancel(telling.run, reason="no longer needed", as_="ana").state == "cancelled"


def _dark(telling: Telling) -> None:
    view = telling.world.client.dark(telling.run, compare=True, as_="bo")
    assert view.view == _comparison(telling), view.warnings


def _comparison(telling: Telling) -> str:
    return compare_view(TABLE, f"errata_{telling.run}_dark")


def _read_by_name(telling: Telling) -> None:
    named = telling.world.table().snapshot_by_name(f"errata_{telling.run}_dark")
    assert named is not None
    assert telling.without_live(telling.world.rows(named.snapshot_id)) == telling.right()
    assert len(telling.world.sql(f"SELECT * FROM {_comparison(telling)}")) == len(telling.right())


def _no_comparison(telling: Telling) -> None:
    assert not test_modes.is_there(telling.world, _comparison(telling))


def _erase(telling: Telling) -> None:
    telling.world.client.erase(["nobody here", "nor here"], reason="request 1", as_="bo")


def _are_listed(telling: Telling) -> None:
    assert telling.world.client.erase(["nobody here", "nor here"], reason="again", as_="bo").already == 2
    rows = telling.world.sql(f"SELECT * FROM {test_erasure.LIST}")
    # a request that the catalog got late may list someone twice, which nothing counts
    assert len({tuple(row) for row in rows}) == 2


def _told_once(telling: Telling) -> None:
    world = telling.world
    telling.world.client.deliver(as_="ana")
    (publication, *taken_back) = world.ledger.publications.list(telling.run)
    assert test_modes.told(world, publication.pub_id) == test_modes.corrected(world, world.days)
    assert all(len(test_modes.told(world, one.pub_id)) == len(world.expected()) for one in taken_back)


def _nothing_owed(telling: Telling) -> None:
    """One fault is outlasted by the command itself, or by the next payment."""
    telling.world.client.deliver(as_="ana")
    assert telling.world.ledger.outbox.list_open() == (), telling.world.said


def _accepted(telling: Telling) -> None:
    _nothing_owed(telling)
    assert test_modes.accepted(telling.world) == telling.world.expected()
    assert len(test_modes.versions(telling.world)) == len(telling.world.expected())


def _nothing_accepted(telling: Telling) -> None:
    _nothing_owed(telling)
    assert test_modes.accepted(telling.world) == []
    assert len(test_modes.versions(telling.world)) == len(telling.world.expected())


def _swapped(rows: Callable[[Telling], Rows]) -> Callable[[Telling], None]:
    def check(telling: Telling) -> None:
        _nothing_owed(telling)
        found = telling.world.sql(f"SELECT * FROM {test_modes.CURRENT}")
        assert telling.without_live(sorted((str(r.day), r.account, r.gross, r.n) for r in found)) == rows(telling)
        assert len(test_modes.versions(telling.world, test_modes.SHADOW)) == len(telling.world.expected())

    return check


def _live_write(telling: Telling) -> None:
    test_live_wins.late(telling.world, telling.world.days[0])
    telling.old = telling.world.rows()


def _rebase(telling: Telling) -> None:
    with pytest.raises(Rebased):
        telling.world.client.validate(telling.run, as_="ana")


def _pinned_again(telling: Telling) -> None:
    assert f"errata_{telling.run}_r1_base" in telling.world.refs()


def _drop_quarantine(telling: Telling) -> None:
    with later(hours=1):  # until then, an attempt that a fault ended may still be writing
        removed = telling.world.client.cleanup(as_="ana").removed
    # told, and so in the audit log, although the catalog's answer to it was lost
    assert quarantine_table(TABLE, telling.run) in {one["table"] for one in removed}


def _no_quarantine(telling: Telling) -> None:
    assert telling.world.client.quarantine(telling.run).table is None


def _set_aside_once(telling: Telling) -> None:
    view = telling.world.client.quarantine(telling.run)
    assert sum(reason.rows for reason in view.reasons) == 9


def _new_columns(telling: Telling) -> None:
    assert set(test_new_columns.NEW) <= test_new_columns.columns(telling.world)
    assert None not in {pair[0] for key, pair in test_new_columns.features(telling.world).items() if key[1][:1] == "a"}


def _no_shadow(telling: Telling) -> None:
    assert [name for name in test_new_columns.shadows(telling.world) if "shadow" in name] == []


def _governed(make: Callable[..., World], place: Path) -> World:
    key = place / "key"
    generate_key_pair(key)
    project = f'erasure: {{table: {test_erasure.LIST}, key: "{key}"}}\n'
    return make(product=test_erasure.NAMES_SUBJECTS, project=project, days=1)


def _poisoned(make: Callable[..., World], _place: Path) -> World:
    return test_quarantine.poisoned(make)


def _made(**options: Any) -> Callable[[Callable[..., World], Path], World]:
    return lambda make, _place: make(**{"days": 2, **options})


def _plain(*changed: Step) -> tuple[Step, ...]:
    """The usual way, with some of its steps told anew."""
    mine = {step.name: step for step in changed}
    usual = (Step("plan", _plan, ()), Step("run", _run, ()), Step("validate", _validate, ()))
    usual += (Step("publish", _publish, (), Telling.right), Step("rollback", _rollback, ()))
    return tuple(mine.get(step.name, step) for step in usual)


_REPLACE = (
    Step("plan", _plan, ("pin",)),
    Step("run", _run, ("guard", "run branch", "staging")),
    Step("validate", _validate, ("candidate",)),
    Step("break off", _broken_off, ("fence",)),
    Step("publish", _publish, ("undo", "publish", "drop refs"), Telling.right),
    Step("rollback", _rollback, ("undo", "rollback")),
    Step("cleanup", _cleanup, ("drop refs",), shows=_nothing_of_it),
)
_VERSIONS = ("side create", "side rows", "side publish")
_SIDE = ("side create", "side rows branch", "side rows", "side corrections")
STORIES = (
    Story("replace", _REPLACE, _made()),
    Story("empty", _plain(Step("run", _run, ("first snapshot",))), _made(history=False)),
    Story(
        "corrections",
        _plain(
            Step("publish", _publish, _SIDE, Telling.right, _told_once),
            Step("rollback", _rollback, _SIDE[1:], shows=_told_once),
        ),
        _made(product=test_modes.BESIDE),
    ),
    Story(
        "versions",
        _plain(
            Step("publish", _publish, (*_VERSIONS, "side create view"), shows=_accepted),
            Step("rollback", _rollback, ("side replace view",), shows=_nothing_accepted),
        ),
        _made(product=test_modes.VERSION),
    ),
    Story(
        "swap view",
        _plain(
            Step("publish", _publish, (*_VERSIONS, "side create view"), shows=_swapped(Telling.right)),
            Step("rollback", _rollback, ("side replace view",), shows=_swapped(lambda telling: telling.old)),
        ),
        _made(product=test_modes.SWAP),
    ),
    Story(
        "quarantine",
        (
            *_plain(Step("run", _run, ("quarantine create", "quarantine staging"), shows=_set_aside_once))[:3],
            Step("cancel", _cancel, ()),
            Step("cleanup", _drop_quarantine, ("quarantine drop",), shows=_no_quarantine),
        ),
        _poisoned,
    ),
    Story("erased", (Step("erase", _erase, ("erased create", "erased rows"), shows=_are_listed),), _governed),
    Story(
        "new columns",
        (
            *_plain(
                Step("run", _run, ("shadow register", "shadow run branch", "shadow staging")),
                Step("validate", _validate, ("shadow candidate",)),
                Step("publish", _publish, ("publish",), Telling.right, _new_columns),
            )[:4],
            Step("cleanup", _cleanup, ("shadow drop",), Telling.right, _no_shadow),
        ),
        _made(product=test_new_columns.PRODUCT, transform=test_new_columns.BUILD),
    ),
    Story(
        "rewrite",
        _plain(
            Step("publish", _publish, ("rows branch", "rows", "publish"), Telling.right),
            Step("rollback", _rollback, ("rows branch", "rows", "rollback")),
        ),
        _made(days=3, spec=""),
        lambda world: world.days[1:2],
    ),
    Story(
        "dark",
        (
            *_plain()[:3],
            Step("dark", _dark, ("dark tag", "side create view"), shows=_read_by_name),
            Step("cancel", _cancel, ()),
            Step("cleanup", _cleanup, ("side drop view",), shows=_no_comparison),
        ),
        _made(),
    ),
    Story(
        "live wins",
        (
            *_plain()[:2],
            Step("live write", _live_write, ()),
            Step("rebase", _rebase, ("pin",), shows=_pinned_again),
            Step("run again", _run, ("staging",)),
            *_plain()[2:],
        ),
        _made(product=test_live_wins.WINS),
    ),
)
