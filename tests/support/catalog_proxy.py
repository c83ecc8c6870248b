"""A proxy before a REST catalog, at which one chosen change meets one chosen fault.

``with proxy.faulty(FAULTS["503 after"], "publish"):`` — the next publication is made by the server and answered with
503. Which request that is, is told by its content (``commits.Change``); everything else passes.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from support.commits import Change

__all__ = ["FAULTS", "Fault", "FaultyProxy", "Hit", "Request"]

Delivery = Literal["never", "once", "twice", "before next", "after next", "when told"]
"""When the server gets the request; the last three are late: around the next change of anyone, or by ``deliver``."""


@dataclass(frozen=True)
class Fault:
    """What the server gets of a request, and what its sender is told: a status, ``cut`` (the connection ends), or the
    server's own ``first`` or ``last`` answer."""

    name: str
    delivered: Delivery
    told: int | Literal["cut", "first", "last"]


_STATUSES = (429, 500, 502, 503, 504)
FAULTS = {
    fault.name: fault
    for fault in (
        *(Fault(f"{status} before", "never", status) for status in _STATUSES),
        *(Fault(f"{status} after", "once", status) for status in _STATUSES),
        Fault("cut before", "never", "cut"),
        Fault("cut after", "once", "cut"),
        Fault("replayed", "twice", "last"),
        Fault("duplicated", "twice", "first"),
        Fault("late, before the next", "before next", 504),
        Fault("late, after the next", "after next", 504),
        Fault("late, at the end", "when told", 504),
    )
}


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """What it changes, as ``commits.Change`` calls it; empty when it changes nothing."""
        change = Change.of_request(self.method, self.path, self.body)
        return change.kind if change else ""


@dataclass(frozen=True)
class Answer:
    """One answer as it is handed on."""

    status: int
    content: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


_FORBIDDEN = Answer(
    403,
    b'{"error": {"message": "not allowed", "type": "ForbiddenException", "code": 403}}',
    (("Content-Type", "application/json"),),
)


@dataclass
class Hit:
    """A request that met a fault, and what the server said each time it got it."""

    kind: str
    fault: Fault
    statuses: list[int] = field(default_factory=list)


@dataclass
class FaultyProxy:
    """Stands before the catalog at ``target``; clients use ``address``."""

    target: str
    address: str = ""
    changes: list[Request] = field(default_factory=list)
    """Every request so far that would change something, in the order of arrival."""
    hits: list[Hit] = field(default_factory=list)
    forbids: Callable[[bytes], bool] = lambda _body: False
    """Says which requests are answered with 403."""
    asks: Callable[[bytes], bytes] = lambda body: body
    """Changes what goes to the catalog."""
    answers: Callable[[bytes], bytes] = lambda content: content
    """Changes what comes back."""
    _waiting: dict[str, tuple[Fault, int]] = field(default_factory=dict)
    _meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)
    _late: list[tuple[Request, Hit]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextmanager
    def before(cls, target: str) -> Iterator[FaultyProxy]:
        """A proxy for this address, until the block ends."""
        proxy = cls(target.removeprefix("http://"))
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        proxy.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield proxy
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @contextmanager
    def faulty(self, fault: Fault, *kinds: str, times: int = 1) -> Iterator[list[Hit]]:
        """The first ``times`` requests of each kind inside this block meet the fault; answers which did."""
        self.hits = []
        self._waiting = dict.fromkeys(kinds, (fault, times))
        try:
            yield self.hits
        finally:
            self._waiting = {}

    @contextmanager
    def meanwhile(self, kind: str, act: Callable[[], None]) -> Iterator[None]:
        """``act`` happens between the first request of this kind and the server."""
        self._meanwhile[kind] = act
        try:
            yield
        finally:
            self._meanwhile.pop(kind, None)

    def deliver(self, when: Delivery = "when told") -> list[int]:
        """Late requests that were kept for this moment reach the server; what it says to each."""
        with self._lock:
            due = [one for one in self._late if one[1].fault.delivered == when]
            self._late = [one for one in self._late if one not in due]
        for request, hit in due:
            hit.statuses.append(self.forward(request).status)
        return [hit.statuses[-1] for _, hit in due]

    def answer(self, request: Request) -> Answer | None:
        """What the sender is told; None when its connection is cut."""
        kind = request.kind
        if self.forbids(request.body):
            return _FORBIDDEN
        if not kind:
            return self.forward(request)
        with self._lock:
            self.changes.append(request)
            fault = self._fault_for(kind)
            act = self._meanwhile.pop(kind, None)
        if act is not None:
            act()
        self.deliver("before next")
        told = self.forward(request) if fault is None else self._meet(fault, request, kind)
        if fault is None:
            self.deliver("after next")
        return told

    def _fault_for(self, kind: str) -> Fault | None:
        fault, times = self._waiting.get(kind, (None, 0))
        if fault is None or times == 0:
            return None
        self._waiting[kind] = (fault, times - 1)
        return fault

    def _meet(self, fault: Fault, request: Request, kind: str) -> Answer | None:
        hit = Hit(kind, fault)
        self.hits.append(hit)
        answers = [self.forward(request) for _ in range({"once": 1, "twice": 2}.get(fault.delivered, 0))]
        hit.statuses += [answer.status for answer in answers]
        if fault.delivered in ("before next", "after next", "when told"):
            with self._lock:
                self._late.append((request, hit))
        match fault.told:
            case "cut":
                return None
            case "first":
                return answers[0]
            case "last":
                return answers[-1]
            case status:
                return Answer(status, headers=(("Retry-After", "0"),) if status in (429, 503) else ())

    def forward(self, request: Request) -> Answer:
        """Ask the catalog."""
        there = http.client.HTTPConnection(self.target, timeout=60)
        try:
            headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
            there.request(request.method, request.path, self.asks(request.body), headers)
            answer = there.getresponse()
            return Answer(answer.status, self.answers(answer.read()), tuple(answer.getheaders()))
        finally:
            there.close()


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultyProxy
    protocol_version = "HTTP/1.1"

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        answer = self.proxy.answer(Request(self.command, self.path, body, kept))
        if answer is None:
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.send_response(answer.status)
        for name, value in answer.headers:
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    do_GET = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests say what they see."""
