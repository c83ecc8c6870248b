"""The contract of :class:`errata.ports.channels.MessageSender`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import pytest

from errata.errors import EngineError
from errata.model.consumer.declaration import Channel
from errata.model.consumer.message import Message, Occasion, write_message
from errata.model.partition import Grain
from errata.ports.channels import MessageSender
from errata.testing.user_hooks import MemoryChannels

SECRET = "planted-secret-0123456789"  # noqa: S105 - what messages must not contain
NOW = datetime(2026, 2, 17, 14, 2, 11, tzinfo=UTC)


class MessageSubject(Protocol):
    """A channel whose address and credentials contain :data:`SECRET`, and its receiver."""

    @property
    def channel(self) -> Channel: ...

    @property
    def sender(self) -> MessageSender: ...

    def received(self) -> list[str]:
        """Everything that arrived, as text, in order."""

    def break_down(self) -> None:
        """Let the receiver take nothing more."""


@dataclass
class MemoryMessageSubject:
    """A channel in memory."""

    channel: Channel = field(default_factory=lambda: Channel("desk", slack=f"https://x.example/{SECRET}"))
    sender: MemoryChannels = field(default_factory=MemoryChannels)

    def received(self) -> list[str]:
        """See the protocol."""
        return [f"{one.id} {one.title} {one.text}" for one in self.sender.sent.get(self.channel.name, [])]

    def break_down(self) -> None:
        """See the protocol."""
        self.sender.down.add(self.channel.name)


def build_message(n: int = 1, event: str = "published") -> Message:
    """A message for contracts."""
    occasion = Occasion(
        event=event,
        at="2026-02-17T14:02:11+00:00",
        run_id="bf-20260217-sales-0a1b2c3d",
        product="shop.sales",
        table="lake.shop.sales",
        grain=Grain.DAY,
        partitions=("2026-01-17", "2026-01-18"),
        reason="Größe <!channel> & 'Einheit' were swapped",
        requested_by="ana",
    )
    return write_message(occasion, "dashboard", f"bf-20260217-sales-0a1b2c3d-p{n}/{event}/tell/dashboard", n)


class MessageContract:
    """A message arrives whole, with its id; a failure is an error that quotes nothing."""

    def test_a_message_arrives_with_its_id_title_and_text(self, message_subject: MessageSubject) -> None:
        """In the order in which messages are sent."""
        first, second = build_message(1), build_message(2)
        for one in (first, second):
            message_subject.sender.send(message_subject.channel, one, NOW)
        arrived = message_subject.received()
        assert [(one.id in text, one.title in text) for one, text in zip((first, second), arrived, strict=True)] == [
            (True, True),
            (True, True),
        ]
        assert "Größe" in arrived[0]

    def test_the_same_message_sent_again_has_the_same_id(self, message_subject: MessageSubject) -> None:
        """A receiver that keeps ids sees it once; a file has it once anyway."""
        for _ in range(2):
            message_subject.sender.send(message_subject.channel, build_message(), NOW)
        arrived = message_subject.received()
        assert arrived
        assert all(build_message().id in text for text in arrived)

    def test_a_receiver_that_takes_nothing_is_an_error_without_secrets(self, message_subject: MessageSubject) -> None:
        """The error names the channel; neither it nor the record of a success has the address."""
        record = message_subject.sender.send(message_subject.channel, build_message(), NOW)
        assert SECRET not in str(record)
        message_subject.break_down()
        with pytest.raises(EngineError) as failed:
            message_subject.sender.send(message_subject.channel, build_message(2), NOW)
        assert message_subject.channel.name in failed.value.message
        assert SECRET not in f"{failed.value!r} {failed.value} {failed.value.__cause__!r} {failed.value.fields}"

    def test_no_message_contains_the_address(self, message_subject: MessageSubject) -> None:
        """What the receiver gets is about the correction."""
        message_subject.sender.send(message_subject.channel, build_message(), NOW)
        assert SECRET not in "".join(message_subject.received())
