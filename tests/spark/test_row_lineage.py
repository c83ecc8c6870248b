"""Format version 3: what publishing and rolling back keep of a row, and what they do not."""

from __future__ import annotations

from collections.abc import Callable

from support.world import TABLE, World

Make = Callable[..., World]


def _lineage(world: World) -> dict[str, tuple[int, int]]:
    query = f"SELECT account, _row_id, _last_updated_sequence_number FROM {TABLE}"
    return {row[0]: (row[1], row[2]) for row in world.sql(query)}


def test_a_rollback_brings_back_rows_and_values_under_new_row_ids(make_world: Make) -> None:
    """The same files are live again, byte for byte; Iceberg numbers the rows of a file that is added anew."""
    world = make_world(days=1, properties={"format-version": "3"})
    files, before = world.files(), _lineage(world)
    plan = world.plan()
    assert any("format v3" in verdict.message and "_row_id" in verdict.message for verdict in plan.verdicts)
    run = world.to("published")
    view = world.client.rollback(run, reason="undo", as_="bo")
    assert (world.files(), world.rows()) == (files, world.wrong())
    after = _lineage(world)
    assert {row_id for row_id, _ in before.values()}.isdisjoint(row_id for row_id, _ in after.values())
    assert min(sequence for _, sequence in after.values()) > max(sequence for _, sequence in before.values())
    assert view.warnings == ("rows and values are as before; their _row_id and _last_updated_sequence_number are new",)


def test_rows_that_are_carried_over_keep_their_row_ids(make_world: Make) -> None:
    """They only change files: to a reader that follows changes by row id, nothing happened to them."""
    world = make_world(days=2, spec="", properties={"format-version": "3"})
    query = f"SELECT _row_id, _last_updated_sequence_number, * FROM {TABLE} WHERE day = date'{world.days[1]}'"
    before = sorted(map(tuple, world.sql(query)))
    world.to("published", world.days[0])
    assert world.rows() == sorted(world.expected(world.days[:1]) + world.wrong(world.days[1:]))
    assert sorted(map(tuple, world.sql(query))) == before
