"""Send a message through a channel, whatever kind it is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from errata.engines.channels.mail import send_mail
from errata.engines.channels.message_file import append_message
from errata.engines.channels.webhook import encode, post_slack, post_webhook
from errata.engines.hooks.commands import run_command
from errata.errors import EngineError
from errata.model.consumer.declaration import Channel
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import to_json
from errata.ports.channels import MessageSender


@dataclass(frozen=True, slots=True)
class ChannelSender:
    """Sends through the channels of a project, whose directory commands run in."""

    root: Path

    def send(self, channel: Channel, message: Message, at: datetime) -> Mapping[str, Any]:
        """See the port."""
        seconds = channel.timeout_seconds
        try:
            if channel.slack is not None:
                return post_slack(channel.slack, message, seconds)
            if channel.webhook is not None:
                return post_webhook(channel.webhook, message, at, seconds)
            if channel.email is not None:
                return send_mail(channel.email, message, seconds)
            if channel.file is not None:
                return append_message(channel.file, message)
            run_command(self.root, channel.command, encode(to_json(message)), seconds)
        except EngineError as error:
            place = find_host(channel)
            where = f" ({place})" if place else ""
            raise EngineError(f"channel {channel.name}{where}: {error.message}") from None
        return {}


def find_host(channel: Channel) -> str:
    """The host of a channel: of its address, everything else may be a secret."""
    address = channel.slack or (channel.webhook and channel.webhook.url) or (channel.email and channel.email.smtp) or ""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


_conforms: type[MessageSender] = ChannelSender
