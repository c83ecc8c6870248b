"""An HTTP receiver on 127.0.0.1 that answers as a test says, and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


class Receiver:
    """One server; ``answer`` decides what it answers to a request."""

    def __init__(self, answer: Callable[[Received], Answer] = lambda _: Answer()) -> None:
        self.answer = answer
        self.received: list[Received] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                told = Received(self.command, self.path, headers, body)
                outer.received.append(told)
                answer = outer.answer(told)
                try:
                    self.send_response(answer.status)
                    for name, value in ({"content-length": str(len(answer.body))} | answer.headers).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer.body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client has given up

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: object) -> None:
                """Be silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
