"""What others do to the simulated table: live jobs, maintenance, a tool that tidies up, an owner who goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.model.run import RunState
from faults.simulated_table import DAYS

if TYPE_CHECKING:
    from faults.simulated_processes import Request
    from faults.simulation import World


def others_at_work(world: World) -> None:
    """Each of them now and then."""
    chance, others, catalog = world.chance, world.others, world.catalog
    if chance.random() < world.writes:
        day, operation = chance.choice(DAYS), chance.choice(["append", "append", "overwrite"])
        world.note(f"live {operation}", catalog.write(operation, day, f"live {catalog.writes} {day}"), day)
    if chance.random() < 0.015:
        day = chance.choice(DAYS)
        world.note("compaction", catalog.write("replace", day, None), day)
    if chance.random() < 0.01:
        expire(world)
    if others.random() < world.rates["live delete"]:
        # of a row that is there, that was there once, or that never was
        day = others.choice(DAYS)
        row = others.choice([f"base {day}", "nobody", *sorted(catalog.head().rows(day))])
        world.note("live delete", catalog.delete(day, row), f"{day} of {row}")
    if others.random() < world.rates["main set back"] and (olds := catalog.before_ours()):
        catalog.set_main(others.choice(olds))
        world.note("main set back", catalog.head().id, "")

    fill_new_column(world)
    if world.later.random() < world.rates["clock ahead"]:
        catalog.set_clock_ahead()
        world.note("clock ahead", catalog.head().id, "")


def expire(world: World) -> None:
    """By Java, which leaves parents that are gone, or by PyIceberg, which clears them."""
    clear_parents = world.later.random() < world.rates["parents cleared"]
    world.catalog.expire(clear_parents=clear_parents)
    world.note("parents cleared" if clear_parents else "expiry", world.catalog.head().id, "")


def fill_new_column(world: World) -> None:
    """The table gains a column when something is published that may be taken back; then live jobs fill it."""
    catalog, later = world.catalog, world.later
    if later.random() >= world.rates["column filled"] or not world.is_planned():
        return
    if not catalog.has_column:
        if RunState.PUBLISHED in world.states().values():
            catalog.add_column()
            world.note("column added", catalog.head().id, "")
        return
    day = later.choice(DAYS)
    if catalog.head().rows(day):
        world.note("column filled", catalog.fill(day, f"note {catalog.writes}"), day)


def drop_what_it_relies_on(world: World, request: Request) -> None:
    """A tool removes a ref that a commit relies on, and expires, when the commit is on its way already."""
    there = [ref for ref in request.relied_on if ref in world.catalog.refs]
    if there and not world.is_healed and world.others.random() < world.rates["ref dropped"]:
        ref = world.others.choice(there)
        world.catalog.drop(ref)
        world.note("ref dropped", ref, "before a commit")
