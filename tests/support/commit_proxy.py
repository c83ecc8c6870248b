"""A PostgreSQL proxy that loses the answer to a COMMIT, in each of the three ways it can be lost.

It reads the client's messages far enough to see a ``COMMIT``. What it then does is the next of ``losses``; without one
it is a plain proxy.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from typing import Literal, Self

__all__ = ["CommitProxy", "Loss"]

Loss = Literal["before", "after", "late"]
"""The server never saw the commit; it did it and the answer was lost; it does it after the client was told nothing."""
_LATE_SECONDS = 0.4


class CommitProxy:
    """Listens on a free port of 127.0.0.1 and talks to the server at ``port``."""

    def __init__(self, port: int) -> None:
        self.losses: deque[Loss] = deque()
        self.lost = 0
        self.is_deaf = False
        """From now on every new connection ends at once."""
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A blocked accept ends by a shutdown, not by a close.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_deaf:
                _end(client)
                continue
            server = socket.create_connection(("127.0.0.1", self._server_port))
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=_copy, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        """Client to server, message by message once the connection is begun."""
        with contextlib.suppress(OSError, EOFError):
            server.sendall(_start_up(client))
            while True:
                kind, body = _message(client)
                if kind == b"Q" and body[4:].rstrip(b"\0").upper() == b"COMMIT" and self.losses:
                    self._lose(self.losses.popleft(), client, server, kind + body)
                    return
                server.sendall(kind + body)
        _end(client)
        _end(server)

    def _lose(self, how: Loss, client: socket.socket, server: socket.socket, commit: bytes) -> None:
        self.lost += 1
        if how == "after":
            # The answer would go the other way: take that way from under it first.
            client.shutdown(socket.SHUT_WR)
            server.sendall(commit)
            time.sleep(0.05)
        _end(client)
        if how == "late":
            time.sleep(_LATE_SECONDS)
            server.sendall(commit)
            time.sleep(0.05)
        _end(server)


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    _end(to)


def _start_up(client: socket.socket) -> bytes:
    size = _exactly(client, 4)
    return size + _exactly(client, struct.unpack("!I", size)[0] - 4)


def _message(client: socket.socket) -> tuple[bytes, bytes]:
    kind, size = _exactly(client, 1), _exactly(client, 4)
    return kind, size + _exactly(client, struct.unpack("!I", size)[0] - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        data = source.recv(count - len(got))
        if not data:
            raise EOFError
        got += data
    return got


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
