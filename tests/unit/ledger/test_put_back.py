"""A ledger and its older copy, both going on from one point: what one of them named, the other never names again."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from errata.errors import AttemptLost
from errata.ledger import Ledger
from errata.model.run import PublicationState, RunState
from unit.ledger.steps import ALIVE, BO, DAYS, TABLE, adopt, intend, must_claim, publish, run_in, settle


@pytest.fixture
def copied(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Copies the ledger at ``url``, which must be closed; answers where the copy is."""
    made: list[str] = []

    def copy() -> str:
        if url.startswith("sqlite"):
            return f"sqlite:///{shutil.copy(url.removeprefix('sqlite:///'), tmp_path / 'copy.db')}"
        server = request.getfixturevalue("postgres")
        made.append(f"copy_{secrets.token_hex(6)}")
        return str(server.create_database(made[0], template=url.rpartition("/")[2].partition("?")[0]))

    yield copy
    for name in made:
        request.getfixturevalue("postgres").drop_database(name)


def test_a_copy_of_a_ledger_gives_other_ids_than_the_ledger_gave(url: str, copied: Callable[[], str]):
    """Same run, same number, same entry before: the publication and its branch have another name all the same."""
    with Ledger.open(url) as ledger:
        run_in(ledger, RunState.VALIDATED)
    older = copied()
    with Ledger.open(url) as ledger:
        first = intend(ledger, "bf-1", DAYS)
    time.sleep(0.002)  # nobody puts a copy back within a millisecond
    with Ledger.open(older) as ledger:
        second = intend(ledger, "bf-1", DAYS)
        assert (first.n, second.n) == (1, 1)
        assert not {first.pub_id, first.undo_branch} & {second.pub_id, second.undo_branch}
        assert ledger.publications.exists(second.pub_id)
        assert not ledger.publications.exists(first.pub_id)


def test_a_publication_that_the_table_has_is_recorded_under_its_own_id(url: str, copied: Callable[[], str]):
    """It has the next number, and everything follows from it as from any other."""
    with Ledger.open(url) as ledger:
        run_in(ledger, RunState.VALIDATED)
    older = copied()
    with Ledger.open(url) as ledger:
        lost = publish(ledger, "bf-1")
    with Ledger.open(older) as ledger:
        found = ledger.publications.intend(
            "bf-1", "publish", DAYS, table=TABLE, person="bo", reason="because", detail={}, lease_seconds=60, actor=BO,
            consumers=(), release={"snapshot_id": "1"}, found_id=lost.pub_id,
        )  # fmt: skip
        done = settle(ledger, found)
        assert (done.pub_id, done.n, done.state) == (lost.pub_id, 1, PublicationState.COMMITTED)
        assert ledger.partitions.accepted(TABLE)[DAYS[0]].pub_id == lost.pub_id
        assert ledger.audit.verify().ok


def test_a_worker_of_the_lost_ledger_has_no_say_in_its_copy(url: str, copied: Callable[[], str]):
    """Same chunk, same fence, another attempt: it can neither prolong nor adopt, and its output has another name."""
    with Ledger.open(url) as ledger:
        run_in(ledger, RunState.RUNNING)
    older = copied()
    with Ledger.open(url) as ledger:
        lost = must_claim(ledger)
    time.sleep(0.002)
    with Ledger.open(older) as ledger:
        mine = must_claim(ledger, owner=ALIVE)
        assert (lost.chunk_id, lost.fence) == (mine.chunk_id, mine.fence)
        assert lost.attempt_id != mine.attempt_id
        assert not ledger.chunks.heartbeat(lost, 60)
        with pytest.raises(AttemptLost):
            adopt(ledger, lost, "1")
        adopt(ledger, mine, "2")
        assert ledger.progress.chunks("bf-1")[0].snapshot_id == "2"


def test_a_candidate_branch_is_named_after_what_it_is_made_of(url: str, copied: Callable[[], str]):
    """The first candidate of a run is another branch when it is made of other files, and the same when it is not."""
    with Ledger.open(url) as ledger:
        run_in(ledger, RunState.STAGED)
    older = copied()
    with Ledger.open(url) as ledger:
        lost = ledger.candidates.intend("bf-1", "a" * 64, BO)
    with Ledger.open(older) as ledger:
        other = ledger.candidates.intend("bf-1", "b" * 64, BO)
        assert (lost.n, other.n) == (1, 1)
        assert lost.branch != other.branch
