"""Port for messages to consumers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from errata.model.consumer.declaration import Channel
from errata.model.consumer.message import Message


class MessageSender(Protocol):
    """Sends messages through the channels of a project."""

    def send(self, channel: Channel, message: Message, at: datetime) -> Mapping[str, Any]:
        """Send the message, signed with the time ``at``; returns what is put on record.

        Raises ``EngineError`` unless the receiver took it within the channel's time limit. The same message may be
        sent again after a crash: its id is the same, and receivers that keep ids see it once. Neither the record nor
        the error contains more of an address than its host.
        """
