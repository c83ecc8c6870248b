"""Status reads one consistent view of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event

from errata.errors import NotFound
from errata.model.product import Publish, Waves
from errata.model.run import RunState
from support.office import ANA, DAYS, Office, office
from unit.ledger.steps import publish

MOST = 8


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Office]:
    made = office(tmp_path, publish=Publish(waves=Waves("1", "0s")))
    made.approve("bo")
    made.judged()
    yield made
    made.ledger.close()


@contextmanager
def counted() -> Iterator[list[Connection]]:
    """The transactions that begin inside the block."""
    begun: list[Connection] = []

    def note(conn: Connection) -> None:
        begun.append(conn)

    event.listen(Engine, "begin", note)
    try:
        yield begun
    finally:
        event.remove(Engine, "begin", note)


def released(house: Office) -> None:
    digest = house.client.status(house.run.run_id).release_digest
    house.client.release(house.run.run_id, digest=digest, as_="bo")


@pytest.mark.parametrize("waves", [0, 1, 2])
def test_the_status_of_a_run_takes_few_transactions(house: Office, waves: int):
    """However many waves, approvals and releases the run has: a status must be cheap enough to repeat each second."""
    released(house)
    for day in DAYS[:waves]:
        publish(house.ledger, house.run.run_id, (day,))
    with counted() as begun:
        view = house.client.status(house.run.run_id)
    assert view.turn is not None
    assert len(view.approvals) == 1
    assert len(begun) <= MOST


def test_a_plan_is_shown_from_one_transaction(house: Office):
    """What it shows fits together, whatever others decide meanwhile."""
    released(house)
    with counted() as begun:
        house.client.show(house.run.run_id)
    assert len(begun) == 1


def test_reads_that_belong_together_do_not_see_what_is_written_meanwhile(house: Office):
    """A decision between two reads shows up in neither; the next read sees it."""
    run = house.run.run_id

    def read() -> tuple[RunState, RunState]:
        before = house.ledger.runs.get(run).state
        house.ledger.runs.move(run, RunState.CANCELLED, actor=ANA)
        return before, house.ledger.runs.get(run).state

    assert house.ledger.read_together(read) == (RunState.VALIDATED, RunState.VALIDATED)
    assert house.ledger.runs.get(run).state is RunState.CANCELLED


def test_a_refusal_inside_reads_that_belong_together_leaves_no_transaction_open(house: Office):
    """The next read starts afresh."""
    with pytest.raises(NotFound):
        house.ledger.read_together(lambda: house.ledger.runs.get("bf-0"))
    with counted() as begun:
        house.ledger.runs.get(house.run.run_id)
    assert len(begun) == 1
