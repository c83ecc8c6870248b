"""``kill -9`` between every step of sending messages, and a receiver that hears all of them, in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.delivery.consumer_messages import owe_messages
from errata.engines.channels.webhook import sign
from errata.ledger import Ledger
from errata.model.audit import Actor
from support.attached import start_without_jvm
from support.http_receiver import HttpReceiver, refuse
from support.memory_world import MemoryWorld
from support.world import PRODUCT

ANA = Actor("ana", "ana", "desk", single_user=False)
POINTS = ("deliver.after_claim", "deliver.before_pay", "deliver.after_pay", "deliver.after_record")
MESSAGES = 3
CONSUMERS = """
channels:
  bi: {webhook: {url: "URL", secret: "${SECRET_OF_BI}"}}
consumers:
  dashboard: {reads: [fin.sales], tell: {channel: bi, on: [planned, published]}}
"""


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as found:
        yield found


def owe_many(world: MemoryWorld, run: str) -> None:
    """A message for each of some publications that other commands recorded."""
    for n in range(MESSAGES):
        owes = owe_messages(world.workspace.project, PRODUCT, "published", world.days)
        world.ledger.outbox.owe(run, f"{run}-p{n}", owes, ANA)


def deliver(root: Path, failpoint: str = "", timeout: str = "30s") -> tuple[int | None, str]:
    """``errata deliver`` in a process of its own: its exit code, and what it said."""
    environment = {"ERRATA_FAILPOINTS": failpoint, "SECRET_OF_BI": "a secret of both"}
    process = start_without_jvm("-C", str(root), "--as", "ana", "deliver", "--timeout", timeout, **environment)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point == "deliver.after_pay" else pytest.mark.slow) for point in POINTS]
)
def test_killed_at_every_message_nothing_is_lost_and_nothing_new_is_heard_twice(
    point: str, tmp_path: Path, receiver: HttpReceiver
) -> None:
    """Each message arrives; the same id has the same body; a receiver that keeps ids and order hears each once."""
    world = MemoryWorld.make(tmp_path / "world", days=1, project=CONSUMERS.replace("URL", receiver.url))
    run = world.to("planned")
    owe_many(world, run)
    world.client.close()
    for nth in (1, 2, 1):
        code, said = deliver(world.root, f"{point}=kill@{nth}")
        assert code == -signal.SIGKILL, said
    code, said = deliver(world.root)
    assert code == 0, said
    heard = receiver.list_once()
    assert [one["event"] for one in heard] == ["planned", *["published"] * MESSAGES]
    sequences = [one["sequence"] for one in heard]
    assert sequences == sorted(set(sequences))
    for post in receiver.posts:
        time = int(post.headers["webhook-timestamp"])
        assert post.headers["webhook-signature"] == sign("a secret of both", post.json["id"], time, post.body)
        assert post.json in heard
    with_ledger = Ledger.attach(f"sqlite:///{world.root}/.errata/ledger.db")
    assert {item.state.value for item in with_ledger.outbox.list(run_id=run)} == {"paid"}
    with_ledger.close()


def test_a_webhook_that_is_down_gets_its_messages_when_it_is_back(tmp_path: Path, receiver: HttpReceiver) -> None:
    """Meanwhile they are owed, and the command says so with its exit code."""
    world = MemoryWorld.make(tmp_path / "world", days=1, project=CONSUMERS.replace("URL", receiver.url))
    run = world.to("planned")
    owe_many(world, run)
    world.client.close()
    receiver.behave = refuse(503)
    code, said = deliver(world.root, timeout="2s")
    assert code == 7
    assert "the address answered HTTP 503" in said
    assert "a secret of both" not in said
    assert {post.json["event"] for post in receiver.posts} == {"planned"}, "messages to one consumer are in order"
    receiver.behave = HttpReceiver().behave
    assert deliver(world.root, timeout="60s")[0] == 0
    assert len(receiver.list_once()) == MESSAGES + 1
