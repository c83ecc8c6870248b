"""One HTTP request: a limit on the whole time, no redirects to another host, and no address in messages.

Proxies come from the environment, as for other programs.
"""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import urlsplit

from errata.errors import EngineError

_MAX_BODY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


def send_request(
    method: str,
    url: str,
    content: bytes | None,
    headers: Mapping[str, str],
    timeout_seconds: float,
    *,
    reads_body: bool = True,
    max_body_bytes: int = _MAX_BODY_BYTES,
    save: Callable[[bytes], object] | None = None,
) -> Answer:
    """Send one request; returns whatever the server answered, and raises ``EngineError`` if it did not answer in time.

    Without ``reads_body`` the status of a success is enough: what follows it may be long, slow or cut off, and the
    server has done what it was asked for. With ``save`` the body of a success goes there, piece by piece, and is empty
    in the answer. The address is in no message, because it may contain a secret.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise EngineError("the address was not called; expected http or https")
    request = urllib.request.Request(url, data=content, headers=dict(headers), method=method)  # noqa: S310
    connections = _Connections()
    opener = urllib.request.build_opener(_Http(connections), _Https(connections), _SameHost)
    try:
        with connections.closed_after(timeout_seconds):
            try:
                with opener.open(request, timeout=timeout_seconds) as answer:
                    if save is not None:
                        _save_body(answer, max_body_bytes, save)
                    body = _read_body(answer, max_body_bytes) if reads_body and save is None else b""
                    found = Answer(answer.status, body, _read_headers(answer.headers))
            except urllib.error.HTTPError as error:
                with error:
                    found = Answer(error.code, error.read(_MAX_BODY_BYTES), _read_headers(error.headers))
        if connections.are_closed:
            raise TimeoutError  # what was read is cut off
        return found
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if connections.are_closed or isinstance(reason, TimeoutError):
            raise EngineError(f"the address did not answer within {timeout_seconds:g} s") from None
        if isinstance(error, http.client.IncompleteRead):
            raise EngineError("the answer was cut off") from None
        # only the type: messages may quote the address
        raise EngineError(f"the address cannot be reached: {type(reason).__name__}") from None


def _read_headers(found: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in (found.items() if found else ())}


def _read_body(answer: http.client.HTTPResponse, max_bytes: int) -> bytes:
    found = answer.read(max_bytes + 1)
    if len(found) > max_bytes:
        raise EngineError("the answer is too long")
    if answer.length:  # what it announced and did not send
        raise http.client.IncompleteRead(found, answer.length)
    return found


def _save_body(answer: http.client.HTTPResponse, max_bytes: int, save: Callable[[bytes], object]) -> None:
    taken = 0
    while piece := answer.read(_MAX_BODY_BYTES):
        taken += len(piece)
        if taken > max_bytes:
            raise EngineError("the answer is too long")
        save(piece)
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


@dataclass
class _Connections:
    """Sockets of a request. A server that sends a byte now and then renews every other time limit."""

    opened: list[socket.socket] = field(default_factory=list)
    are_closed: bool = False

    @contextmanager
    def closed_after(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._close)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _close(self) -> None:
        self.are_closed = True
        for one in self.opened:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already

    def register(self, one: socket.socket) -> None:
        self.opened.append(one)
        if self.are_closed:
            self._close()


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connections: _Connections) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connections = self._connections

        class Connection(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                connections.register(self.sock)

        return self.do_open(Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connections: _Connections) -> None:
        super().__init__()
        self._connections = connections

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connections = self._connections

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                connections.register(self.sock)

        return self.do_open(Connection, req)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects of GET on the same host only: headers and the body are not for others."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if req.get_method() != "GET" or (here.scheme, here.netloc) != (there.scheme, there.netloc):
            return None  # the redirect itself is the answer
        return super().redirect_request(req, fp, code, msg, headers, newurl)
