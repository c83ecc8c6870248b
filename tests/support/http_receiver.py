"""An HTTP receiver on 127.0.0.1 that fails, hangs, resets, answers twice or late, as a test says."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


@dataclass(frozen=True)
class Post:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Behave = Callable[[socket.socket], None]


def answer(content: bytes = OK) -> Behave:
    return lambda client: client.sendall(content)


def refuse(status: int, body: bytes = b"", *headers: str) -> Behave:
    more = "".join(f"{line}\r\n" for line in headers)
    head = f"HTTP/1.1 {status} No\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{more}\r\n"
    return lambda client: client.sendall(head.encode() + body)


def hang(client: socket.socket) -> None:
    """Take the request and never answer; ends when the client does."""
    client.settimeout(30)
    client.recv(1)


def reset(client: socket.socket) -> None:
    """Take the request and reset the connection."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def dribble(content: bytes = b"HTTP/1.1 200 OK\r\nx: ") -> Behave:
    """Send a byte now and then, for much longer than anyone waits."""

    def behave(client: socket.socket) -> None:
        for byte in content + b"y" * 1000:
            client.sendall(bytes([byte]))
            time.sleep(0.05)

    return behave


def answer_late(seconds: float) -> Behave:
    def behave(client: socket.socket) -> None:
        time.sleep(seconds)
        client.sendall(OK)

    return behave


@dataclass
class HttpReceiver:
    """Keeps every request; ``behave`` decides what happens then. Without ``reads`` it speaks first."""

    behave: Behave = field(default_factory=answer)
    reads: bool = True
    posts: list[Post] = field(default_factory=list)
    at_port: int = 0  # any free one

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", self.at_port))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(10)

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def list_once(self) -> list[Any]:
        """Bodies by webhook-id, each once: what a receiver sees that keeps ids."""
        return list({post.headers["webhook-id"]: post.json for post in self.posts}.values())

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                if self.reads:
                    self.posts.append(_read(client))
                self.behave(client)
            except OSError:
                pass  # the client has gone


def _read(client: socket.socket) -> Post:
    client.settimeout(10)
    found = b""
    while b"\r\n\r\n" not in found:
        piece = client.recv(65_536)
        if not piece:
            raise ConnectionError
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += client.recv(65_536)
    return Post(first.split(" ")[1], headers, body)
