"""The answer to a COMMIT is lost: whatever happened on the server, the effect is there exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from errata.errors import EngineError, StateRefused
from errata.ledger import Ledger
from errata.model.run import AttemptState, RunState
from support.commit_proxy import CommitProxy, Loss
from support.postgres import PostgresServer
from unit.ledger.steps import ANA, BO, actions, adopt, bring, must_claim, plan

# A proxy speaks no TLS; the answer to the offer of it would be one byte that is no message.
PLAIN = "?sslmode=disable&gssencmode=disable"


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CommitProxy]:
    with CommitProxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def url(postgres: PostgresServer, proxy: CommitProxy) -> Iterator[str]:
    name = f"lost_{secrets.token_hex(6)}"
    postgres.create_database(name)
    yield postgres.url(name, port=proxy.port) + PLAIN
    postgres.drop_database(name)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as ledger:
        yield ledger


@pytest.mark.parametrize(
    "loss", ["after", *(pytest.param(loss, marks=pytest.mark.slow) for loss in ("before", "late"))]
)
def test_each_change_happens_once(ledger: Ledger, proxy: CommitProxy, loss: Loss):
    """Plan, move, claim, heartbeat, adopt, note and part: the caller gets its answer, the log has one entry of each."""
    proxy.losses.append(loss)
    plan(ledger, chunks=2)
    proxy.losses.append(loss)
    bring(ledger, "bf-1", RunState.RUNNING)
    proxy.losses.append(loss)
    first = must_claim(ledger)
    proxy.losses.append(loss)
    assert ledger.chunks.heartbeat(first, 60)
    proxy.losses.append(loss)
    adopt(ledger, first)
    proxy.losses.append(loss)
    entry = ledger.audit.note("bf-1", BO, "note", {"word": "once"})
    proxy.losses.append(loss)
    digest = ledger.parts.put(b"bytes")
    assert proxy.lost == 7
    assert not proxy.losses
    assert actions(ledger) == [
        "run.planned", "run.approved", "run.running", "chunk.claimed", "chunk.adopted", "note",
    ]  # fmt: skip
    assert ledger.audit.entries()[-1] == entry
    assert ledger.parts.get(digest) == b"bytes"
    assert [(a.chunk_id, a.fence, a.state) for a in ledger.progress.attempts("bf-1")] == [
        ("c0000", 1, AttemptState.ADOPTED)
    ]
    assert must_claim(ledger).chunk_id == "c0001"
    assert ledger.audit.verify().ok


@pytest.mark.parametrize("loss", [pytest.param("before", marks=pytest.mark.slow), "after", "late"])
def test_the_answer_can_be_lost_again_and_again(ledger: Ledger, proxy: CommitProxy, loss: Loss):
    """Also the commit of the try that only looked may be lost; what happened first is what is answered."""
    proxy.losses.extend([loss, "after", loss, "before"])
    entry = ledger.audit.note(None, ANA, "note", {})
    assert proxy.lost >= 1
    assert ledger.audit.entries() == (entry,)
    proxy.losses.clear()
    assert ledger.audit.verify().ok


def test_a_refusal_is_on_the_record_once(ledger: Ledger, proxy: CommitProxy):
    """The entry of a refusal is a write like any other."""
    plan(ledger)
    proxy.losses.append("after")
    with pytest.raises(StateRefused):
        ledger.runs.move("bf-1", RunState.PUBLISHED, actor=ANA)
    assert actions(ledger) == ["run.planned", "refused"]


def test_a_doubt_that_cannot_be_resolved_is_said(proxy: CommitProxy, url: str):
    """When the server does not come back in time, the error does not claim that nothing happened."""
    with Ledger.open(f"{url}&errata_patience=1") as ledger:
        proxy.losses.append("after")
        proxy.is_deaf = True
        with pytest.raises(EngineError) as lost:
            ledger.audit.note(None, ANA, "note")
        assert "not known" in str(lost.value.state)
        proxy.is_deaf = False
        assert actions(ledger) == ["note"]
