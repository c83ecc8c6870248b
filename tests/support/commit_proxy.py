"""PostgreSQL proxies that lose a commit or its answer: one at any ``COMMIT``, one at a chosen commit of a catalog.

They read the client's messages far enough to see what is committed; what is not chosen passes.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from support.commits import Change

__all__ = ["CatalogCommitProxy", "CommitProxy", "Loss"]

Loss = Literal["before", "after", "late"]
"""The server never saw the commit; it did it and the answer was lost; it does it after the client was told nothing."""
_LATE_SECONDS = 0.4
_NOT_YET = (80877103, 80877104)  # an offer of TLS or GSS, which is declined by one byte; the start-up follows
_METADATA = re.compile(rb"file:(/[^\0]+?\.metadata\.json)")


class CommitProxy:
    """Listens on a free port of 127.0.0.1 and talks to the server at ``port``; the next commits meet ``losses``."""

    patience = 0.05
    """Seconds in which the server has done what reached it."""

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
            for message in _start_up(client):
                server.sendall(message)
            session = _Session()
            while True:
                kind, body = _message(client)
                session.read(kind, body)
                loss = self._loss(session, kind, body)
                if loss is not None:
                    self._lose(loss, client, server, kind + body)
                    return
                server.sendall(kind + body)
        _end(client)
        _end(server)

    def _loss(self, _session: _Session, kind: bytes, body: bytes) -> Loss | None:
        """What becomes of this message, if it commits."""
        return self.losses.popleft() if self.losses and _statement(kind, body) == b"COMMIT" else None

    def _lose(self, how: Loss, client: socket.socket, server: socket.socket, commit: bytes) -> None:
        self.lost += 1
        if how == "after":
            # The answer would go the other way: take that way from under it first.
            client.shutdown(socket.SHUT_WR)
            server.sendall(commit)
            time.sleep(self.patience)
        _end(client)
        if how == "late":
            time.sleep(_LATE_SECONDS)
            server.sendall(commit)
            time.sleep(self.patience)
        _end(server)


class CatalogCommitProxy(CommitProxy):
    """Stands before the database of a catalog: the next commit of each of ``waiting`` meets its loss.

    A table's or view's pointer is set by an ``INSERT`` that names its metadata, moved by an ``UPDATE`` that names the
    old metadata and the new, and removed by a ``DELETE``; what the commit is for is read off those files. The JVM
    commits by that statement alone, pyiceberg in a transaction.
    """

    patience = 0.3

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.waiting: dict[str, Loss] = {}
        self.hits: list[str] = []

    @contextlib.contextmanager
    def faulty(self, loss: Loss, *kinds: str) -> Iterator[list[str]]:
        """The first commit of each kind inside this block meets the loss; answers which did."""
        self.hits, self.waiting = [], dict.fromkeys(kinds, loss)
        try:
            yield self.hits
        finally:
            self.waiting = {}

    def _loss(self, session: _Session, _kind: bytes, _body: bytes) -> Loss | None:
        if not session.commits or not session.moves:
            return None
        moved, session.moves = session.moves, ""
        loss = self.waiting.pop(moved, None)
        self.hits += [moved] if loss else []
        return loss


class _Session:
    """What a client has said that its next commit is made of."""

    def __init__(self) -> None:
        self.in_transaction = False
        self.commits = False
        """The message that was read last commits."""
        self.moves = ""
        """The kind of the change of a table's or view's pointer that is not committed yet."""
        self._prepared: dict[bytes, bytes] = {}

    def read(self, kind: bytes, body: bytes) -> None:
        statement = _statement(kind, body)
        self.commits = statement == b"COMMIT" if self.in_transaction else kind == b"S"
        if statement.startswith(b"BEGIN"):
            self.in_transaction = True
        if statement in (b"COMMIT", b"ROLLBACK"):
            self.in_transaction = False
        if kind == b"P":
            name, text, _ = body[4:].split(b"\0", 2)
            self._prepared[name] = text.upper()
        if kind == b"B":
            _, name, given = body[4:].split(b"\0", 2)
            self._bind(self._prepared.get(name, b""), given)
        if statement == b"ROLLBACK":
            self.moves = ""

    def _bind(self, text: bytes, given: bytes) -> None:
        if b" ICEBERG_TABLES" not in text:
            return
        if text.startswith(b"DELETE"):
            # catalog, namespace, name
            self.moves = Change(_parameters(given)[2], "drop view" if b"'VIEW'" in text else "drop").kind
        elif text.startswith((b"INSERT", b"UPDATE")) and (places := _METADATA.findall(given)):
            new, *old = (Path(place.decode()) for place in places[:2])
            before = _metadata(old[0]) if old else {}
            self.moves = Change.of_metadata(new.parts[-3], before, _metadata(new)).kind


def _statement(kind: bytes, body: bytes) -> bytes:
    return body[4:].rstrip(b"\0").upper() if kind == b"Q" else b""


def _metadata(place: Path) -> Any:
    """The JSON of a metadata file; those of views are compressed."""
    content = place.read_bytes()
    return json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)


def _parameters(given: bytes) -> list[str]:
    """The values of a message ``Bind``, after its two names."""
    formats, given = struct.unpack("!H", given[:2])[0], given[2:]
    given, found = given[2 * formats :], list[str]()
    count, given = struct.unpack("!H", given[:2])[0], given[2:]
    for _ in range(count):
        size, given = struct.unpack("!i", given[:4])[0], given[4:]
        found.append(given[: max(size, 0)].decode())
        given = given[max(size, 0) :]
    return found


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    _end(to)


def _start_up(client: socket.socket) -> Iterator[bytes]:
    while True:
        size = _exactly(client, 4)
        body = _exactly(client, struct.unpack("!I", size)[0] - 4)
        yield size + body
        if struct.unpack("!I", body[:4])[0] not in _NOT_YET:
            return


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
