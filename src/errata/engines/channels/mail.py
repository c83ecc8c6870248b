"""Send messages by e-mail over SMTP, as plain text and HTML."""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from errata.errors import EngineError
from errata.model.consumer.declaration import Email
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import build_mail_id, to_html, to_text
from errata.text.escape import escape_text

_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


def send_mail(email: Email, message: Message, timeout_seconds: float) -> dict[str, Any]:
    """Hand a message to the mail server; raises ``EngineError`` unless it took it for at least one recipient."""
    mail = build_mail(email, message)
    try:
        with _connect(email.smtp, timeout_seconds) as server:
            refused = server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({str(code) for code, _ in error.recipients.values()})
        raise EngineError(f"the mail server refused every recipient: {', '.join(codes)}") from None
    except smtplib.SMTPResponseException as error:
        # only the code: servers quote addresses and user names
        raise EngineError(f"the mail server answered {error.smtp_code}") from None
    except TimeoutError:
        raise EngineError(f"the mail server did not answer within {timeout_seconds:g} s") from None
    except smtplib.SMTPNotSupportedError:
        raise EngineError("the mail server does not offer what the address asks for: STARTTLS or a login") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise EngineError(f"the mail server cannot be used: {type(error).__name__}") from None
    return {"recipients": len(email.to) - len(refused), "refused": len(refused)}


def build_mail(email: Email, message: Message) -> EmailMessage:
    """The e-mail; the same message has the same Message-ID in every attempt."""
    mail = EmailMessage()
    mail["From"] = email.sender
    mail["To"] = ", ".join(email.to)
    mail["Subject"] = escape_text(message.title)
    mail["Date"] = format_datetime(datetime.fromisoformat(message.occasion.at))
    mail["Message-ID"] = build_mail_id(message)
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Errata-Id"] = message.id
    mail["X-Errata-Sequence"] = str(message.sequence)
    mail.set_content(to_text(message))
    mail.add_alternative(to_html(message), subtype="html")
    return mail


@contextmanager
def _connect(address: str, timeout_seconds: float) -> Iterator[smtplib.SMTP]:
    """A connection, logged in; it is cut off at the time limit, which a slow server cannot extend byte by byte."""
    parts = urlsplit(address)
    limit = _TimeLimit(time.monotonic() + timeout_seconds)
    timer = threading.Timer(timeout_seconds, limit.cut_off)
    timer.daemon = True
    timer.start()
    try:
        server = _open(parts, timeout_seconds, limit)
        try:
            if parts.scheme == "smtp+starttls":
                server.starttls(context=ssl.create_default_context())
            if parts.username is not None:
                server.login(unquote(parts.username), unquote(parts.password or ""))
            yield server
        finally:
            _quit(server)
    except OSError:  # of which those of smtplib are some
        if limit.is_over:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


@dataclass
class _TimeLimit:
    ends: float
    servers: list[smtplib.SMTP] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        # by the clock: on a busy machine the socket's own limit may end a wait before the timer's thread runs
        return time.monotonic() >= self.ends

    def cut_off(self) -> None:
        for server in self.servers:
            if server.sock is not None:
                try:
                    server.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # closed already


def _open(parts: SplitResult, timeout_seconds: float, limit: _TimeLimit) -> smtplib.SMTP:
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]

    class Plain(smtplib.SMTP):
        def connect(self, *arguments: Any, **more: Any) -> tuple[int, bytes]:
            limit.servers.append(self)
            return super().connect(*arguments, **more)

    class Encrypted(smtplib.SMTP_SSL):
        def connect(self, *arguments: Any, **more: Any) -> tuple[int, bytes]:
            limit.servers.append(self)
            return super().connect(*arguments, **more)

    if parts.scheme == "smtps":
        return Encrypted(host, port, timeout=timeout_seconds, context=ssl.create_default_context())
    return Plain(host, port, timeout=timeout_seconds)


def _quit(server: smtplib.SMTP) -> None:
    try:
        server.quit()
    except (smtplib.SMTPException, OSError):
        server.close()  # the message is taken or not; how they part does not matter
