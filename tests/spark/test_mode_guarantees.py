"""Every guarantee of every publication mode, one test for a column and one case for a mode.

``docs/concepts/publication-modes.md`` is the table of these cases; a unit test holds the two against each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from errata.errors import PublishConflict, PublishHeld
from errata.model.refs import undo_branch
from spark import test_modes as modes
from support.clock import later
from support.ids import numbered
from support.world import PRODUCT_FILE, TABLE, TRANSFORM, World

Make = Callable[..., World]
Rows = list[tuple[object, ...]]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Mode:
    """One mode: its product, what its readers read, and what that is before and after a publication of some days."""

    name: str
    product: str
    seen: Callable[[World], Rows]
    before: Callable[[World, tuple[str, ...]], Rows]
    after: Callable[[World, tuple[str, ...]], Rows]
    transform: str = TRANSFORM
    touches_target: bool = True
    writes: bool = False  # data files at publication

    def __str__(self) -> str:
        return self.name

    def world(self, make: Make, days: int = 3) -> World:
        """Three days; an append finds the last two empty."""
        world = make(days=days, product=self.product, transform=self.transform, history=self.name != "append")
        if self.name == "append":
            world.write_history(world.days[:1])
        return world

    def scope(self, world: World) -> str:
        """The last two days."""
        return f"{world.days[1]}..{world.days[2]}"


def _main(world: World) -> Rows:
    return [row for row in world.rows() if row[1] != "live"]


def _old(world: World, days: tuple[str, ...]) -> Rows:
    return sorted(world.wrong(days)) if days else []


def _none(_world: World, _days: tuple[str, ...]) -> Rows:
    return []


def _right(world: World, days: tuple[str, ...]) -> Rows:
    return sorted(world.expected(days)) if days else []


def _merged(world: World, days: tuple[str, ...]) -> Rows:
    return sorted(row for day in days for row in modes.merged_rows(world, day))


def _events(world: World) -> Rows:
    """The net of all corrections: what an applier of them would have to put in."""
    if not modes.is_there(world, modes.CORRECTIONS):
        return []
    rows = world.sql(
        "SELECT partition, account, get_json_object(new, '$.gross') gross, row_number() OVER "
        f"(PARTITION BY partition, account ORDER BY at DESC) newest, publication_id FROM {modes.CORRECTIONS}"
    )
    return sorted(
        (r.partition, r.account, r.gross) for r in rows if r.newest == 1 and "-p" in numbered(r.publication_id)[-4:]
    )


def _told(world: World, days: tuple[str, ...]) -> Rows:
    return sorted((day, name, str(gross)) for day, name, gross, _ in world.expected(days)) if days else []


def _accepted(world: World) -> Rows:
    return modes.accepted(world) if modes.is_there(world, modes.VIEW) else []


def _current(world: World) -> Rows:
    """The view, which the owner of the target made before the first correction."""
    if not modes.is_there(world, modes.CURRENT):
        world.sql(f"CREATE VIEW {modes.CURRENT} AS SELECT * FROM {TABLE}")
    rows = world.sql(f"SELECT day, account, gross, n FROM {modes.CURRENT} WHERE account <> 'live'")
    return sorted((str(r.day), r.account, r.gross, r.n) for r in rows if str(r.day) != world.days[0])


REPLACE = Mode("replace_partitions", PRODUCT_FILE, _main, _old, _right)
APPEND = Mode("append", modes.APPEND, _main, _none, _right)
MERGE = Mode("merge", modes.MERGE, _main, _old, _merged, modes.CHANGES)
VERSION = Mode("version", modes.VERSION, _accepted, _none, _right, touches_target=False, writes=True)
CORRECTIONS = Mode("corrections", modes.ALONE, _events, _none, _told, touches_target=False, writes=True)
SWAP = Mode("swap_view", modes.SWAP, _current, _old, _right, touches_target=False, writes=True)
MODES = [REPLACE, APPEND, MERGE, SWAP, VERSION, CORRECTIONS]
every_mode = pytest.mark.parametrize("mode", MODES, ids=str)


def _around(mode: Mode, world: World) -> Rows:
    """What readers see outside the scope, where they read the target."""
    return _old(world, world.days[:1]) if mode.touches_target else []


@every_mode
def test_whole_scope_at_once(make_world: Make, mode: Mode) -> None:
    """Before the publication nothing is seen, after it everything; there is one commit in between."""
    world = mode.world(make_world)
    scope, around = world.days[1:], _around(mode, world)
    run = world.to("validated", mode.scope(world))
    assert mode.seen(world) == sorted(around + mode.before(world, scope))
    world.client.publish(run, as_="bo")
    assert mode.seen(world) == sorted(around + mode.after(world, scope))
    publications = [p for p in world.ledger.publications.list(run) if p.state.value == "committed"]
    assert len(publications) == 1


@every_mode
def test_metadata_only(make_world: Make, mode: Mode) -> None:
    """Publication writes data files in the modes that say so, and in no other."""
    world = mode.world(make_world)
    run = world.to("validated", mode.scope(world))
    assert (world.client.publish(run, as_="bo").data_files_written > 0) == mode.writes


@every_mode
def test_live_appends_kept(make_world: Make, mode: Mode) -> None:
    """Rows that live wrote elsewhere between plan and publication are there afterwards, also after a rollback."""
    world = mode.world(make_world)
    run = world.to("validated", mode.scope(world))
    world.live(world.days[0])
    world.client.publish(run, as_="bo")
    assert [row[1] for row in world.rows()].count("live") == 1
    world.client.rollback(run, reason="back", as_="bo")
    assert [row[1] for row in world.rows()].count("live") == 1


@every_mode
def test_conflict_detected(make_world: Make, mode: Mode) -> None:
    """A live write into one partition of the scope refuses that one; the other can go out."""
    world = mode.world(make_world)
    run = world.to("validated", mode.scope(world))
    world.live(world.days[1])
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    world.client.publish(run, partitions=world.days[2], as_="bo")
    assert [row[1] for row in world.rows()].count("live") == 1


@every_mode
def test_per_partition_rollback(make_world: Make, mode: Mode) -> None:
    """One day goes back, the other stays."""
    world = mode.world(make_world)
    run, around = world.to("published", mode.scope(world)), _around(mode, world)
    world.client.rollback(run, partitions=world.days[1], reason="one", as_="bo")
    one = mode.before(world, world.days[1:2]) + mode.after(world, world.days[2:])
    assert mode.seen(world) == sorted(around + one)


@every_mode
def test_rollback_after_expiry(make_world: Make, mode: Mode) -> None:
    """Every snapshot that may expire has expired, on the target and on the tables beside it."""
    world = mode.world(make_world)
    run, around = world.to("published", mode.scope(world)), _around(mode, world)
    world.live(world.days[0])
    tables = [
        TABLE,
        *(table for table in (modes.VERSIONS, modes.CORRECTIONS) if modes.is_there(world, table)),
    ]
    for table in (name.partition(".")[2] for name in tables):
        world.sql(
            f"CALL lake.system.expire_snapshots(table => '{table}', older_than => timestamp'2100-01-01', "
            "retain_last => 1)"
        )
    world.client.rollback(run, reason="late", as_="bo")
    assert mode.seen(world) == sorted(around + mode.before(world, world.days[1:]))


@every_mode
def test_no_mixture(make_world: Make, mode: Mode) -> None:
    """Whoever reads while publications and rollbacks go on sees the whole scope old or the whole scope new."""
    world = mode.world(make_world)
    around, scope = _around(mode, world), world.days[1:]
    run = world.to("validated", mode.scope(world))
    allowed = [sorted(around + mode.before(world, scope)), sorted(around + mode.after(world, scope))]
    over, odd, reads = threading.Event(), [], []

    def read() -> None:
        while not over.is_set():
            found = mode.seen(world)
            reads.append(1)
            if found not in allowed:
                odd.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        world.client.publish(run, as_="bo")
        world.client.rollback(run, reason="back", as_="bo")
    finally:
        over.set()
        reader.join()
    assert len(reads) > 3
    assert odd == []


@every_mode
def test_streaming_readers(make_world: Make, mode: Mode) -> None:
    """A stream over the target goes on through a publication, except where the publication overwrites."""
    world = mode.world(make_world)
    stream = world.spark.readStream.format("iceberg").load(TABLE).writeStream.format("noop")
    stream = stream.option("checkpointLocation", str(world.root / "stream")).trigger(availableNow=True)
    stream.start().awaitTermination()
    world.to("published", mode.scope(world))
    if mode.name in ("replace_partitions", "merge"):
        with pytest.raises(Exception, match=r"(?i)overwrite"):
            stream.start().awaitTermination()
    else:
        stream.start().awaitTermination()


@every_mode
def test_history_kept(make_world: Make, mode: Mode) -> None:
    """What was published and taken back can be read: for good in tables beside the target, else for the window."""
    world = mode.world(make_world)
    run = world.to("published", mode.scope(world))
    world.client.rollback(run, reason="back", as_="bo")
    if mode in (VERSION, SWAP):
        assert len(modes.versions(world, modes.VERSIONS if mode is VERSION else modes.SHADOW)) == len(
            world.expected(world.days[1:])
        )
    elif mode is CORRECTIONS:
        count = len(world.expected(world.days[1:]))
        assert (
            len(modes.told(world, world.publication(run))) == len(modes.told(world, world.publication(run, 2))) == count
        )
    else:
        kept = world.refs()
        assert {undo_branch(world.publication(run, n)) for n in (1, 2)} <= kept


@every_mode
def test_in_waves(make_world: Make, mode: Mode) -> None:
    """The newest day of the scope first, the other one after the pause; each by one commit."""
    waved = replace(mode, product=mode.product.replace("publish: {", "publish: {waves: {size: 1, pause: 1h}, "))
    world = waved.world(make_world)
    older, newer = world.days[1:2], world.days[2:]
    around, run = _around(mode, world), world.to("validated", mode.scope(world))
    world.client.publish(run, as_="bo")
    assert mode.seen(world) == sorted(around + mode.before(world, older) + mode.after(world, newer))
    with pytest.raises(PublishHeld):
        world.client.publish(run, as_="bo")
    with later(hours=2):
        world.client.publish(run, as_="bo")
    assert mode.seen(world) == sorted(around + mode.after(world, world.days[1:]))


@every_mode
def test_readable_by_name(make_world: Make, mode: Mode) -> None:
    """The candidate under its name, and readers as before."""
    world = mode.world(make_world)
    run = world.to("validated", mode.scope(world))
    before = mode.seen(world)
    view = world.client.dark(run, name="preview", as_="bo")
    rows = world.sql(view.reads["Spark"])
    found = sorted((str(r.day), r.account, r.gross, r.n) for r in rows if str(r.day) != world.days[0])
    assert found == (_merged if mode is MERGE else _right)(world, world.days[1:])
    assert mode.seen(world) == before


@every_mode
def test_old_beside_new(make_world: Make, mode: Mode) -> None:
    """By key, in a view that says the same before and after the publication."""
    world = mode.world(make_world)
    run = world.to("validated", mode.scope(world))
    view = world.client.dark(run, compare=True, as_="bo")
    shown = sorted(
        map(tuple, world.sql(f"SELECT day, account, change, old_gross, new_gross FROM {view.view}")), key=str
    )
    old = {} if mode is APPEND else {row[:2]: row[2] for row in world.wrong(world.days[1:])}
    new = {row[:2]: row[2] for row in (_merged if mode is MERGE else _right)(world, world.days[1:])}
    assert {(str(day), name): (a, b) for day, name, _, a, b in shown} == {
        key: (old.get(key), new.get(key)) for key in {*old, *new}
    }
    words = {(None, True): "added", (True, None): "removed"}
    for day, name, change, a, b in shown:
        told = words.get((None if a is None else True, None if b is None else True))
        assert change == (told or ("same" if a == b else "changed")), (day, name)
    world.client.publish(run, as_="bo")
    again = sorted(
        map(tuple, world.sql(f"SELECT day, account, change, old_gross, new_gross FROM {view.view}")), key=str
    )
    assert again == shown
