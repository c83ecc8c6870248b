"""A way to the Snowflake emulator on which the answers to chosen statements are lost."""

from __future__ import annotations

import gzip
import json
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

__all__ = ["AnswerProxy"]

_LIMIT_SECONDS = 30
_NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length", "content-encoding", "host")


class AnswerProxy:
    """Listens on a free port of 127.0.0.1; ``lose`` is the beginning of a statement, ``times`` how many answers go."""

    def __init__(self, port: int, lose: str, times: int) -> None:
        self.lost = 0

        class Handler(_Handler):
            server_port = port
            proxy = self

        self.lose, self.times = lose, times
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_port: ClassVar[int]
    proxy: ClassVar[Any]

    def do_POST(self) -> None:
        self._forward()

    def do_PUT(self) -> None:
        self._forward()

    def do_GET(self) -> None:
        self._forward()

    def log_message(self, *_: object) -> None:
        pass

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        server = HTTPConnection("127.0.0.1", self.server_port, timeout=_LIMIT_SECONDS)
        server.request(self.command, self.path, body, dict(self.headers))
        answer = server.getresponse()
        content = answer.read()
        server.close()
        if self._is_lost(body):
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _NOT_PASSED_ON:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _is_lost(self, body: bytes) -> bool:
        if not self.path.startswith("/queries/"):
            return False
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        statement = json.loads(text).get("sqlText", "") if text[:1] == b"{" else ""
        if not statement.startswith(self.proxy.lose) or self.proxy.lost >= self.proxy.times:
            return False
        self.proxy.lost += 1
        return True
