"""A mail server on 127.0.0.1 that keeps mail, and refuses or drops it as a test says."""

from __future__ import annotations

import base64
import email
import email.policy
import socketserver
import ssl
import threading
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import ClassVar, Self, cast


@dataclass
class MailServer:
    """Speaks enough SMTP for one client at a time; ``certificate`` is a PEM file with a key, for STARTTLS."""

    certificate: Path | None = None
    user: str = ""
    password: str = ""
    refuse: dict[str, str] = field(default_factory=dict)  # first word of a command → answer instead
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[tuple[str, ...]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"mail": self})
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])


class _Handler(socketserver.StreamRequestHandler):
    mail: ClassVar[MailServer]
    timeout = 10

    def handle(self) -> None:
        self._encrypted, self._to = False, list[str]()
        try:
            self._say(self.mail.refuse.get("CONNECT", "220 mail.example"))
            while line := self.rfile.readline():
                if not self._answer(line.decode().strip()):
                    return
        except OSError:
            pass  # the client has gone
        finally:
            self.rfile.close()
            self.connection.close()

    def _answer(self, line: str) -> bool:
        word = line.upper().split(" ")[0].split(":")[0]
        refusal = self.mail.refuse.get(line.lower()) or self.mail.refuse.get(word)
        if refusal == "drop":
            return False
        if refusal:
            self._say(refusal)
        elif word == "EHLO":
            offers = ["STARTTLS"] if self.mail.certificate and not self._encrypted else []
            offers += ["AUTH PLAIN"] if self.mail.user else []
            lines = ["mail.example", *offers]
            for n, one in enumerate(lines):
                self._say(f"250{' ' if n == len(lines) - 1 else '-'}{one}")
        elif word == "STARTTLS":
            self._say("220 go")
            self._encrypt()
        elif word == "AUTH":
            given = base64.b64decode(line.split(" ")[2]).decode().split("\0")
            self._say("235 ok" if given[1:] == [self.mail.user, self.mail.password] else "535 no")
        elif word == "MAIL":
            self._to = []
            self._say("250 ok")
        elif word == "RCPT":
            self._to.append(line.partition("<")[2].partition(">")[0])
            self._say("250 ok")
        elif word == "DATA":
            self._say("354 go")
            self._take()
        else:
            self._say("221 bye" if word == "QUIT" else "250 ok")
            return word != "QUIT"
        return True

    def _take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        parsed = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        self.mail.mails.append(cast(EmailMessage, parsed))
        self.mail.recipients.append(tuple(self._to))
        self.mail.encrypted.append(self._encrypted)
        self._say(self.mail.refuse.get("TAKEN", "250 taken"))

    def _encrypt(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(self.mail.certificate))
        self.connection = self.request = context.wrap_socket(self.request, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self._encrypted = True

    def _say(self, line: str) -> None:
        self.connection.sendall(f"{line}\r\n".encode())
